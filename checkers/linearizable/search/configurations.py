"""Configurations of a search as rows of numbers, and sets of them.

A configuration is a row: [state, node, unread, placed…, free…, used…]. `placed` and `free` are bit sets over the slots
of open definite operations, `words` numbers each: which of them took effect, and which overwrites may have done so
unseen. `used` counts, by column, how many of some equal indefinite operations took effect. `node` is the place in the
trail that the row was reached by; rows that differ only in it are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled, inlined, modular

STATE, NODE, UNREAD, PLACED = range(4)
"""Columns of a row: behind the words of PLACED are those of `free`, then the counts `used`. UNREAD: 1 if an indefinite
operation took effect last, and no read has needed it; between events it is 0."""

BITS = 64
"""How many slots a word holds."""


class Rows(NamedTuple):
    """A set of configurations in the order in which they were added. It is changed in place as long as there is
    room."""

    row: Int64
    """Shape (capacity, width)."""
    place: Int64
    """An open hash table of positions in `row`; -1 where a place is free. Shape (2 * capacity,), a power of two."""
    size: Int64
    """Shape (1,): how many rows are in the set."""


class Trail(NamedTuple):
    """The steps that led to each configuration, last one first; changed in place. Without capacity nothing is
    recorded."""

    step: Int64
    """Shape (capacity, 2): the node before, and what took effect: an operation, or -1 - kind of an indefinite one."""
    size: Int64
    """Shape (1,): how many steps are recorded."""


@compiled
def no_rows(width: int, capacity: int) -> Rows:
    """An empty set with room for at least `capacity` rows."""
    size = 16
    while size < capacity:
        size *= 2
    place = np.full(2 * size, -1, dtype=np.int64)
    return Rows(np.empty((size, width), dtype=np.int64), place, np.zeros(1, dtype=np.int64))


@compiled
def with_room(rows: Rows, more: int) -> Rows:
    """The same set, to which `more` rows can be added."""
    size = rows.size[0]
    if size + more <= len(rows.row):
        return rows
    grown = no_rows(rows.row.shape[1], max(size + more, 2 * len(rows.row)))
    for i in range(size):
        add(grown, rows.row[i])
    return grown


@compiled
def with_steps(trail: Trail, more: int) -> Trail:
    """The same trail, to which `more` steps can be added."""
    size, capacity = trail.size[0], len(trail.step)
    if capacity == 0 or size + more <= capacity:
        return trail
    step = np.empty((max(size + more, 2 * capacity), 2), dtype=np.int64)
    step[:size] = trail.step[:size]
    return Trail(step, trail.size)


@inlined
def record(trail: Trail, row: Int64, what: int) -> None:
    """Note the step that led to the row, whose node is this step from now on."""
    if len(trail.step):
        node = trail.size[0]
        trail.step[node, 0] = row[NODE]
        trail.step[node, 1] = what
        row[NODE] = node
        trail.size[0] = node + 1


@modular
def _hash(row: Int64) -> int:
    h = np.uint64(1469598103934665603) ^ np.uint64(row[STATE])
    for c in range(UNREAD, len(row)):
        h = (h ^ np.uint64(row[c])) * np.uint64(1099511628211)
        h ^= h >> np.uint64(29)
    return int(h & np.uint64(0x7FFFFFFFFFFFFFFF))


@inlined
def _same(one: Int64, other: Int64) -> bool:
    same = one[STATE] == other[STATE]
    for c in range(UNREAD, len(one)):
        if one[c] != other[c]:
            same = False
            break
    return bool(same)


@inlined
def copy(row: Int64, to: Int64) -> None:
    for c in range(len(row)):
        to[c] = row[c]


@inlined
def add(rows: Rows, row: Int64) -> None:
    """Add a row, unless it is there already."""
    mask = len(rows.place) - 1
    at = _hash(row) & mask
    while rows.place[at] >= 0:
        if _same(rows.row[rows.place[at]], row):
            return
        at = (at + 1) & mask
    size = rows.size[0]
    copy(row, rows.row[size])
    rows.place[at] = size
    rows.size[0] = size + 1


@inlined
def has(row: Int64, base: int, slot: int) -> bool:
    return bool((row[base + slot // BITS] >> np.int64(slot % BITS)) & 1)


@inlined
def put(row: Int64, base: int, slot: int) -> None:
    row[base + slot // BITS] |= np.int64(1) << np.int64(slot % BITS)


@inlined
def clear(row: Int64, base: int, slot: int) -> None:
    row[base + slot // BITS] &= ~(np.int64(1) << np.int64(slot % BITS))


@compiled
def set_of(slots: Int64, words: int) -> Int64:
    bits = np.zeros(words, dtype=np.int64)
    for slot in slots:
        put(bits, 0, slot)
    return bits
