"""The input of a search: the events of a history in numbers, and what kinds of operations do to states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import inlined, modular

INVOKED, COMPLETED, MAY_HAPPEN, OVER = range(4)
"""Types of events. MAY_HAPPEN: an indefinite operation was invoked. OVER: equal indefinite operations do not matter any
more."""

OTHER, READS, OVERWRITES = range(3)
"""What a kind does: READS never changes a state; OVERWRITES is always possible and gives the same state from any."""

UNCOUNTED = -1
"""The column of an indefinite kind whose uses are not counted: it may take effect again and again."""

ASKED_AT_FIRST, ASKED = 1_024, 65_536
"""How many missing entries are asked for at once: at first, and at most. Some of them may be the same."""


class Timeline(NamedTuple):
    """What happens, in order, and to which operation; all int64."""

    event: Int64
    subject: Int64
    """By event: an operation, or for MAY_HAPPEN and OVER a kind."""
    slot_of: Int64
    """By operation: its place among the open definite ones; -1 if it is indefinite."""
    kind_of: Int64
    """By operation: its kind, which says what it does."""
    end: Int64
    """By operation: when it ends, as a history index."""
    does: Int64
    """By kind: OTHER, READS or OVERWRITES."""
    column: Int64
    """By kind: where its uses are counted, or UNCOUNTED."""


class Moves(NamedTuple):
    """What kinds of operations do to states: an open hash table, which the caller fills on demand."""

    table: Int64
    """Shape (capacity, 3): entry, which is state * kinds + kind, or -1 where the place is free; first target; number of
    targets."""
    targets: Int64
    """The states to which entries lead."""
    missing: Int64
    """Room for the entries that are asked for."""
    asked: Int64
    """Shape (1,): how many are asked for."""


class Present(NamedTuple):
    """What can take effect at some event; changed in place."""

    open_in: Int64
    """By slot: the operation in it, or -1."""
    available: Int64
    """By kind: how many indefinite operations of it began."""


@modular
def mixed(x: int) -> int:
    h = np.uint64(np.int64(x)) * np.uint64(0x9E3779B97F4A7C15)
    return int((h ^ (h >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@inlined
def find(table: Int64, entry: int) -> int:
    """The place of an entry in the table of moves, or the free place where it belongs."""
    mask = len(table) - 1
    at = mixed(entry) & mask
    while table[at, 0] >= 0 and table[at, 0] != entry:
        at = (at + 1) & mask
    return at


@inlined
def ask(moves: Moves, entry: int) -> None:
    """Ask for an entry that is not in the table."""
    asked = moves.asked[0]
    if asked < len(moves.missing) and (asked == 0 or moves.missing[asked - 1] != entry):
        moves.missing[asked] = entry
        moves.asked[0] = asked + 1


@inlined
def looked_up(moves: Moves, entry: int) -> int:
    """The place of an entry in the table of moves; -1 if it is not there, and then it is asked for."""
    at = find(moves.table, entry)
    if moves.table[at, 0] < 0:
        ask(moves, entry)
        return -1
    return at
