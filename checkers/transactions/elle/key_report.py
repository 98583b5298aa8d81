"""What findings on lists and on registers have in common: their examples in words, and lost updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Int64, run_starts, witness_order

WITNESSES = 8
"""The most transactions that are named of a lost update."""

Sentence = Callable[[int], tuple[str, Mapping[str, object]]]
"""A function from the number of an anomaly among those of its name to (because, details)."""


@dataclass(frozen=True, kw_only=True)
class KeyReport:
    """Reports the anomalies of a bucket of keys. A `key` is a position in `names`, which are distinct."""

    findings: Findings
    names: pa.Array

    def add(self, name: str, *, key: Int64, operations: tuple[Int64, ...], tie: Int64, sentence: Sentence) -> None:
        """One anomaly for each element of `key`, witnessed by the transactions invoked at `operations`."""
        if len(key) == 0:
            return
        rank = np.empty(len(self.names), dtype=np.int64)
        rank[np.argsort(self.names.to_numpy(zero_copy_only=False))] = np.arange(len(rank))
        examples = []
        for i in witness_order(*operations, ties=(tie, rank[key]))[:EXAMPLES].tolist():
            because, details = sentence(i)
            examples.append(
                Example(
                    key=str(self.names[int(key[i])].as_py()),
                    operations=tuple(sorted({int(column[i]) for column in operations})),
                    tie=(int(tie[i]),),
                    because=because,
                    details=details,
                )
            )
        self.findings.add(name, len(key), examples)


@dataclass(frozen=True, kw_only=True)
class LostUpdates:
    """Versions that several committed transactions read and then wrote over; arrays of equal length."""

    row: Int64
    """The read of the first of these transactions."""
    count: Int64
    """How many transactions these are."""
    witnesses: tuple[Int64, ...]
    """The starts of up to WITNESSES of them; if there are fewer, the first one is repeated."""

    @classmethod
    def of(cls, row: Int64, key: Int64, version: Int64, start: Int64) -> LostUpdates:
        """The lost updates among rows that read a `version` of a `key`, each in a transaction, invoked at `start`, that
        also writes the key."""
        order = np.lexsort((start, version, key))
        row, key, version, start = (column[order] for column in (row, key, version, start))
        first = np.flatnonzero(run_starts(key, version))
        count = np.diff(np.append(first, len(row)))
        first, count = first[count > 1], count[count > 1]
        witnesses = tuple(start[first + np.where(count > i, i, 0)] for i in range(WITNESSES))
        return cls(row=row[first], count=count, witnesses=witnesses)


def written_again(written: str, earlier: np.integer) -> str:
    """The sentence about a value that a transaction writes although one invoked `earlier` wrote it, too."""
    return f"{written} again, after the transaction invoked at {earlier}: a read does not show which of both it saw"
