"""Which transaction wrote which keys, and the order of each session: what the kernels of all weak levels look up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Bool, Int32, Int64
from checkers.kernels.gap_filling import next_place, require_filled, require_room
from checkers.transactions.history.committed import NEVER, WRITES, Committed
from harness.compiled import compiled, inlined


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """What transactions wrote, and their sessions. They are numbered as in `Committed`; INITIAL has neither."""

    committed: Committed
    definite: Bool
    before: Int32
    """The last definite transaction before each in its session, or NO_INDEX."""
    member_first: Int64
    member: Int32
    """Transactions of session s are `member[member_first[s]:member_first[s + 1]]`, in order."""
    written_first: Int64
    written: Int32
    """The keys that t wrote are `written[written_first[t]:written_first[t + 1]]`, ascending."""

    def __len__(self) -> int:
        return len(self.committed)

    @property
    def keys(self) -> int:
        return int(self.committed.key.max(initial=-1)) + 1

    @classmethod
    def of(cls, committed: Committed) -> Accesses:
        definite = committed.end != NEVER
        member_first, member, before = _sessions(committed.session, definite)
        written_first, written = _written(committed.first, committed.key, committed.writer)
        return cls(
            committed=committed,
            definite=definite,
            before=before,
            member_first=member_first,
            member=member,
            written_first=written_first,
            written=written,
        )


class Columns(NamedTuple):
    """`Accesses` and its operations for kernels, where T is the number of transactions."""

    first: Int64
    """int64[T + 1]: operations of t are first[t]:first[t + 1]."""
    key: Int32
    writer: Int32
    """int32[operations]: the transaction that a read is from, or INITIAL; WRITES for a write."""
    session: Int32
    definite: Bool
    member_first: Int64
    """int64[sessions + 1]: transactions of session s are member[member_first[s]:member_first[s + 1]], in order."""
    member: Int32
    written_first: Int64
    """int64[T + 1]: the keys that t wrote are written[written_first[t]:written_first[t + 1]], ascending."""
    written: Int32
    keys: int


def columns_of(accesses: Accesses) -> Columns:
    rows = accesses.committed
    return Columns(
        rows.first,
        rows.key,
        rows.writer,
        rows.session,
        accesses.definite,
        accesses.member_first,
        accesses.member,
        accesses.written_first,
        accesses.written,
        accesses.keys,
    )


@compiled
def _sessions(session: Int32, definite: Bool) -> tuple[Int64, Int32, Int32]:
    count = session.max() + 1 if len(session) > 1 else 0
    first = np.zeros(count + 1, dtype=np.int64)
    for t in range(1, len(session)):
        first[session[t] + 1] += 1
    first = np.cumsum(first)
    filled = first[:-1].copy()
    member = np.empty(max(len(session) - 1, 0), dtype=np.int32)
    before = np.full(len(session), NO_INDEX, dtype=np.int32)
    last = np.full(count, NO_INDEX, dtype=np.int32)
    for t in range(1, len(session)):
        s = session[t]
        member[next_place(filled, first, s)] = t
        before[t] = last[s]
        if definite[t]:
            last[s] = t
    require_filled(filled, first)
    return first, member, before


@compiled
def _written(first: Int64, key: Int32, writer: Int32) -> tuple[Int64, Int32]:
    result_first = np.zeros(len(first), dtype=np.int64)
    keys = np.empty(np.sum(writer == WRITES), dtype=np.int32)
    count = 0
    for t in range(len(first) - 1):
        begin, ascending = count, True
        for i in range(first[t], first[t + 1]):
            if writer[i] == WRITES:
                require_room(count, len(keys))
                ascending = ascending and (count == begin or keys[count - 1] < key[i])
                keys[count] = key[i]
                count += 1
        if not ascending:
            keys[begin:count].sort()
        result_first[t + 1] = count
    require_filled(result_first[-1:], np.array([0, len(keys)]))
    return result_first, keys


@inlined
def write_of(t: int, key: int, written_first: Int64, written: Int32) -> int:
    """The place in `written` of t's write of the key; NO_INDEX if t did not write it."""
    low, high = written_first[t], written_first[t + 1]
    while low < high:
        middle = (low + high) // 2
        if written[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < written_first[t + 1] and written[low] == key else NO_INDEX


@compiled
def longer(numbers: Int32, needed: int) -> Int32:
    """The same numbers, with room for at least `needed`."""
    if needed <= len(numbers):
        return numbers
    result = np.empty(max(2 * len(numbers), needed), dtype=np.int32)
    result[: len(numbers)] = numbers
    return result
