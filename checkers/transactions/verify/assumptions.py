"""The order of a register's versions by the assumptions that a certificate names.

A transaction touches two versions of a key: the one that it read first, before it wrote the key itself, and the one
that it left there. A version is what a transaction that did not fail wrote last, or None, the initial one. These show
that a precedes b:

    initial            a is the initial version
    wfr-keys           one transaction read a and left b
    sequential-keys    of two transactions of a session the earlier one touches a, the later one b
    linearizable-keys  one transaction ended before another one began, the first touches a, the second touches b

Nothing here depends on a model. If assumptions contradict each other, or the history, versions have no order, and the
conclusions are worth no more than the assumptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.transactions.verify.history import Refuted, TransactionHistory
from checkers.transactions.verify.observations import Observations

Version = int | None


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    observations: Observations
    assumed: frozenset[str]
    _writers: dict[int, dict[int, int]] = field(default_factory=dict)

    @property
    def history(self) -> TransactionHistory:
        return self.observations.history

    def require_precedes(self, key: int, before: Version, after: Version, because: Any, named: Any) -> None:
        """Raises Refuted unless these transactions show, by this assumption, that the one precedes the other."""
        rule = _RULES.get(because) if isinstance(because, str) else None
        if rule is None or (because not in self.assumed and because != INITIALLY):
            raise Refuted(f"{because!r} is nothing that was assumed")
        if not isinstance(named, list):
            raise Refuted("no transactions are named that show it")
        transactions = tuple(self.history.named(one) for one in named)
        for version in (before, after):
            if version is not None and self._writer(key, version) is None:
                raise Refuted(f"{self.history.keys[key]} had no version {version}")
        if before == after:
            raise Refuted("not two versions")
        if not rule(self, key, before, after, transactions):
            raise Refuted(f"{because} does not put {_version(before)} before {_version(after)}")

    def _initially(self, key: int, before: Version, after: Version, transactions: tuple[int, ...]) -> bool:
        return before is None and not transactions

    def _writes_follow_reads(self, key: int, before: Version, after: Version, transactions: tuple[int, ...]) -> bool:
        if len(transactions) != 1:
            return False
        shown, left = self._touched(transactions[0], key)
        return shown == [before] and left == [after]

    def _sequential(self, key: int, before: Version, after: Version, transactions: tuple[int, ...]) -> bool:
        if len(transactions) != 2:
            return False
        first, second = self.history.process[list(transactions)].tolist()
        return first == second and self._in_time(key, before, after, transactions)

    def _in_time(self, key: int, before: Version, after: Version, transactions: tuple[int, ...]) -> bool:
        if len(transactions) != 2:
            return False
        self.observations.require_ended_before(*transactions)
        first, second = (self._touched(transaction, key) for transaction in transactions)
        return before in chain(*first) and after in chain(*second)

    def _touched(self, transaction: int, key: int) -> tuple[list[Version], list[Version]]:
        """(the version that it read first, the version that it left), each at most one."""
        shown = [
            value
            for of, value in self.observations.reads(transaction)
            if of == key and self._is_shown(transaction, key, value)
        ]
        left = None if self.history.failed[transaction] else self.observations.written(transaction, key)
        return shown[:1], [] if left is None else [left]

    def _is_shown(self, reader: int, key: int, value: Version) -> bool:
        return value is None or self._writer(key, value) not in (None, reader)

    def _writer(self, key: int, value: int) -> int | None:
        """The transaction that left this version."""
        if key not in self._writers:
            history = self.history
            writes = np.flatnonzero(history.is_write & (history.key == key) & ~history.failed[history.transaction])
            values = history.value.take(pa.array(writes)).to_pylist()
            last = dict(zip(history.transaction[writes].tolist(), values, strict=True))
            self._writers[key] = {value: transaction for transaction, value in last.items()}
        return self._writers[key].get(value)


def _version(version: Version) -> str:
    return "the initial version" if version is None else str(version)


INITIALLY = "initial"

_RULES: Mapping[str, Callable[[Assumptions, int, Version, Version, tuple[int, ...]], bool]] = {
    INITIALLY: Assumptions._initially,
    "wfr-keys": Assumptions._writes_follow_reads,
    "sequential-keys": Assumptions._sequential,
    "linearizable-keys": Assumptions._in_time,
}
