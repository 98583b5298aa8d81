"""Configurations that another one makes superfluous.

    write 1, open    write 2, open    read of 2 completes

When the read completes, write 2 has taken effect. The configuration in which write 1 did so before it can do nothing
that the one without write 1 cannot do, because there write 1 is free: it may have taken effect unseen, right before
write 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.search.configurations import PLACED, STATE
from checkers.linearizable.search.events import mixed
from harness.compiled import compiled

COMPARED = 1_024
"""The most similar configurations with which one is compared, to see whether they make it superfluous."""


class OpenSlots(NamedTuple):
    """The slots of open definite operations, by what these do: bit sets of shape (words,), int64."""

    reads: Int64
    overwrites: Int64
    others: Int64


@compiled
def without_superfluous(rows: Int64, slots: OpenSlots) -> Int64:
    """The configurations that no other one makes superfluous.

    `rows` has shape (count, width), and so has what is returned, with fewer rows.
    """
    count = len(rows)
    order = np.argsort(_costs(rows, slots), kind="mergesort")
    size = 4
    while size < 2 * count:
        size *= 2
    last_like = np.full(size, -1, dtype=np.int64)
    like = np.empty(count, dtype=np.int64)
    found = np.empty((count, rows.shape[1]), dtype=np.int64)
    kept = 0
    for i in order:
        # Only configurations of this key can make one another superfluous.
        key = mixed(rows[i, STATE])
        for w in range(len(slots.others)):
            key = mixed(key ^ (rows[i, PLACED + w] & slots.others[w]))
        key &= size - 1
        at = last_like[key]
        compared = 0
        while at >= 0 and compared < COMPARED:
            if found[at, STATE] == rows[i, STATE] and _is_superfluous(rows[i], found[at], slots):
                break
            at = like[at]
            compared += 1
        if at < 0 or compared == COMPARED:
            found[kept] = rows[i]
            like[kept] = last_like[key]
            last_like[key] = kept
            kept += 1
    return found[:kept]


@compiled
def _is_superfluous(one: Int64, other: Int64, slots: OpenSlots) -> bool:
    """Whether the other, which is in the same state, can do all that the one can: it has placed the same operations, or
    more reads; each overwrite is free in it, or is as in the one; and it has used no more indefinite operations."""
    words = len(slots.reads)
    for w in range(words):
        placed = one[PLACED + w] ^ other[PLACED + w]
        if placed & ~(slots.reads[w] | slots.overwrites[w]) or placed & one[PLACED + w] & slots.reads[w]:
            return False
        owed = slots.overwrites[w] & ~other[PLACED + words + w]
        if (one[PLACED + words + w] | placed) & owed:
            return False
    return bool(np.all(other[PLACED + 2 * words :] <= one[PLACED + 2 * words :]))


@compiled
def _ones(bits: int) -> int:
    left, one, count = np.uint64(bits), np.uint64(1), 0
    while left:
        left &= left - one
        count += 1
    return count


@compiled
def _costs(rows: Int64, slots: OpenSlots) -> Int64:
    """A cost for each configuration, lower for the more promising, and always lower for one that makes another
    superfluous. It is low if few indefinite operations were used, few operations other than overwrites are still to
    take effect, and many overwrites are free."""
    words = len(slots.reads)
    cost = np.zeros(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        for c in range(PLACED + 2 * words, rows.shape[1]):
            cost[i] += 4 * rows[i, c]
        for w in range(words):
            hard = slots.reads[w] | slots.others[w]
            owed = slots.overwrites[w] & ~rows[i, PLACED + words + w]
            cost[i] += 2 * _ones(hard & ~rows[i, PLACED + w]) + _ones(owed) + _ones(owed & rows[i, PLACED + w])
    return cost
