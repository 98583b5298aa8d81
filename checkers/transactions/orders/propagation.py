"""Three rules by which known edges between events force further ones, written as rows of edges with their reasons.

For a read of key k by r from w and another writer u of k: if u precedes r, it precedes w (OVERWRITTEN); if w precedes
u, so does r (OVERWRITES). At snapshot isolation writers of one key exclude each other: if one began before another
committed, it committed before the other began (EXCLUSIVE). Where transactions take effect in different orders at
different places, only the first rule holds.

Which event precedes which is found elsewhere: in `saturation` by clocks, in `bounded_propagation` by short paths.

Sources: Biswas, Enea, OOPSLA 2019, and Tan et al., Cobra, OSDI 2020, for any order of versions; Huang et al., PolySI,
VLDB 2023, for snapshots.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int32, Int64
from checkers.transactions.evidence.proof import Because
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.events import CODE, Edges
from harness.compiled import compiled, inlined

INITIALLY, OVERWRITTEN, OVERWRITES, EXCLUSIVE = (
    CODE[because] for because in (Because.INITIAL, Because.OVERWRITTEN, Because.OVERWRITES, Because.EXCLUSIVE)
)


class OrderKind(IntEnum):
    """What kind of order the events have, which decides which rules hold."""

    TOTAL = 0
    """All events have one order: OVERWRITTEN, OVERWRITES and EXCLUSIVE."""
    PER_SITE = 1
    """A transaction comes before those that see it, and takes effect for others when it may: OVERWRITTEN alone."""


class Forced(NamedTuple):
    rows: Int32
    """int32[6, room]: source, target, because, key, reader and writer of each edge."""
    used: Int64
    """int64[1]: how many edges there are."""


def edges_of(rows: Int32) -> Edges:
    source, target, because, key, reader, writer = (np.ascontiguousarray(row) for row in rows)
    return Edges(source=source, target=target, because=because.astype(np.int8), key=key, reader=reader, writer=writer)


@compiled
def with_room(forced: Forced, more: int) -> Forced:
    rows = forced.rows
    while forced.used[0] + more > rows.shape[1]:
        rows = np.concatenate((rows, np.empty_like(rows)), axis=1)
    return Forced(rows, forced.used)


@inlined
def is_full(forced: Forced) -> bool:
    """Whether there may be no room for what a rule adds, which is up to two edges."""
    return bool(forced.used[0] + 2 > forced.rows.shape[1])


@inlined
def note_overwritten(forced: Forced, width: int, key: int, reader: int, writer: int, other: int) -> None:
    """The other writer precedes the reader. If the reader saw the initial version, that is a contradiction: two edges
    are added, which make a cycle."""
    if writer == INITIAL:
        _note(forced, INITIAL, other * width, INITIALLY, NO_INDEX, NO_INDEX, NO_INDEX)
    _note(forced, other * width + width - 1, writer * width, OVERWRITTEN, key, reader, writer)


@inlined
def note_overwrites(forced: Forced, width: int, key: int, reader: int, writer: int, other: int) -> None:
    """The other writer comes after the one that was read from."""
    _note(forced, reader * width, other * width + width - 1, OVERWRITES, key, reader, writer)


@inlined
def note_exclusive(forced: Forced, width: int, key: int, earlier: int, later: int) -> None:
    """Of two writers the earlier one began before the later one committed."""
    _note(forced, earlier * width + width - 1, later * width, EXCLUSIVE, key, NO_INDEX, NO_INDEX)


@inlined
def _note(forced: Forced, source: int, target: int, because: int, key: int, reader: int, writer: int) -> None:
    rows, at = forced.rows, forced.used[0]
    rows[0, at], rows[1, at], rows[2, at] = source, target, because
    rows[3, at], rows[4, at], rows[5, at] = key, reader, writer
    forced.used[0] = at + 1
