"""Versions of registers, assumptions about their order, and which of them precedes which for what reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum

import numpy as np

from checkers.kernels.columns import NO_INDEX, Bool, Int8, Int64, run_starts
from checkers.transactions.elle.rw_register.resolution import NOTHING, Registers
from checkers.transactions.elle.rw_register.rows import RegisterRole


class Assumption(Enum):
    """A promise about each single key that the system is assumed to keep."""

    WFR_KEYS = "wfr-keys"
    SEQUENTIAL_KEYS = "sequential-keys"
    LINEARIZABLE_KEYS = "linearizable-keys"


@dataclass(frozen=True, kw_only=True)
class Assumed:
    assumptions: frozenset[Assumption] = frozenset()
    order: Mapping[int, int] = field(default_factory=dict)
    """The place of each transaction in a total order that the system reported, by history index of the completion."""


class OrderedBy(IntEnum):
    """Why one version precedes another."""

    INITIAL = 0
    WRITES_FOLLOW_READS = 1
    PROCESS = 2
    REALTIME = 3
    REPORTED = 4


@dataclass(frozen=True, kw_only=True)
class Versions:
    """The versions of all keys of a bucket: for each key the initial one, then those that were installed, or read
    although they were never written, in the order of rows."""

    first: Int64
    """Versions of key k are first[k]:first[k + 1]."""
    row: Int64
    """The row that wrote each version; -1 if none did."""
    of_row: Int64
    """The version that each row reads or installs; -1 for rows that do neither."""

    @classmethod
    def of(cls, registers: Registers) -> Versions:
        keys = len(registers.names)
        installed = registers.installed
        garbage = np.flatnonzero((registers.role == RegisterRole.READ) & (registers.writer == NO_INDEX))
        garbage = garbage[np.lexsort((registers.value[garbage], registers.key[garbage]))]
        new = run_starts(registers.key[garbage], registers.value[garbage])
        shown = np.sort(np.concatenate((np.flatnonzero(installed), garbage[new])))
        key = registers.key[shown]
        first = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(1 + np.bincount(key, minlength=keys))))
        version = np.arange(len(shown)) + key + 1
        row = np.full(first[-1], -1, dtype=np.int64)
        row[version] = np.where(installed[shown], shown, -1)
        of_row = np.full(len(registers.key), -1, dtype=np.int64)
        of_row[shown] = version
        of_row[garbage] = of_row[garbage[new]][np.cumsum(new) - 1]
        reads = np.flatnonzero(registers.resolved)
        by = registers.writer[reads]
        of_row[reads] = np.where(by == NOTHING, first[registers.key[reads]], of_row[np.maximum(by, 0)])
        return cls(first=first, row=row, of_row=of_row)

    def __len__(self) -> int:
        return len(self.row)

    @property
    def key(self) -> Int64:
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True, kw_only=True)
class Precedences:
    """Version `before[i]` precedes `after[i]`. The evidence are two rows, or one."""

    before: Int64
    after: Int64
    evidence: Int8
    before_row: Int64
    """The row that is evidence for `before`; -1 if the reason is INITIAL."""
    after_row: Int64

    def part(self, which: Int64 | Bool) -> Precedences:
        return Precedences(
            before=self.before[which],
            after=self.after[which],
            evidence=self.evidence[which],
            before_row=self.before_row[which],
            after_row=self.after_row[which],
        )

    @classmethod
    def by(cls, why: OrderedBy, before: Int64, after: Int64, before_row: Int64, after_row: Int64) -> Precedences:
        evidence = np.full(len(before), why, dtype=np.int8)
        return cls(before=before, after=after, evidence=evidence, before_row=before_row, after_row=after_row)

    @classmethod
    def joined(cls, parts: Sequence[Precedences]) -> Precedences:
        return cls(
            **{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)}
        )

    @classmethod
    def distinct(cls, parts: Sequence[Precedences], versions: int) -> Precedences:
        """All parts together, sorted, with the first evidence for each pair of versions."""
        none = np.zeros(0, dtype=np.int64)
        whole = cls.joined([cls.by(OrderedBy.INITIAL, none, none, none, none), *parts])
        order = np.argsort(whole.before * versions + whole.after, kind="stable")
        return whole.part(order[run_starts(whole.before[order], whole.after[order])])
