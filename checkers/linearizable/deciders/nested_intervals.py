"""Intervals that must be nested: each is known to cover its middle part, and may be longer at both ends.

In a row of intervals whose middle parts overlap, the longest interval contains all others, so it must be able to begin
before every middle part and to end behind all of them. Any interval that can do so may be the longest: it can be made
longer than all others, and the others no longer than the row, and everything stays nested. Without it the row falls
into shorter rows, to which the same applies. If no interval can be the longest, that row proves that there is no
nesting.

    0 invoke push 1, 1 ok push 1, 2 push 2, 3 pop 2, 4 pop 1: the middle part of 1 is from 1 to 4, and holds that of 2

Source: Lee and Mathur, arXiv 2410.04581, and Abdulla and others, arXiv 2509.17795, decide stacks by the same idea;
the trees are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled, inlined

FAR = 1 << 60
"""Greater than every time and every count."""

UNPLACED = -1


class Nesting(NamedTuple):
    """A way to nest the intervals, or the row in which none can be the longest."""

    left: Int64
    """A time right before which the interval may begin, so that it contains all that begin there and have a later
    turn."""
    right: Int64
    """A time right behind which it may end."""
    turn: Int64
    """Its turn: an interval comes before those that it contains; UNPLACED in and below a row without a longest one."""
    stuck_left: int
    """The row without a longest one lasts from here; -1 if all are nested."""
    stuck_right: int


class Steps(NamedTuple):
    """The times at which middle parts begin or end, ranked: step r lasts from `time[r]` to `time[r + 1]`."""

    time: Int64
    """The time of each rank."""
    rank: Int64
    """The rank of each time; 0 for times without one."""


class Tournament(NamedTuple):
    """Finds the least key in a range of leaves; changed in place."""

    key: Int64
    """By leaf, of which there is a power of two: its key; FAR if it takes no part."""
    winner: Int64
    """By node, where 1 is the root: the leaf below it with the least key; -1 if no key there is less than FAR."""


class Coverage(NamedTuple):
    """How many middle parts that are not placed cover each step; changed in place."""

    cover: Int64
    """By node, where 1 is the root: the least number below it, without what `deeper` of the nodes above adds."""
    deeper: Int64
    """By inner node: what it adds to itself and to all nodes below it."""


class Rows(NamedTuple):
    """A stack of rows, each from its first step to the end of its last one."""

    left: Int64
    right: Int64


@compiled
def nested(earliest: Int64, begin: Int64, end: Int64, latest: Int64, horizon: int) -> Nesting:
    """Nest intervals that begin in (earliest, begin) and end in (end, latest); begin < end.

    Times are from 0 to `horizon`, and no two of those that begin are equal. Cost: O(horizon + n log n).
    """
    left = np.full(len(begin), -1, dtype=np.int64)
    right = np.full(len(begin), -1, dtype=np.int64)
    turn = np.full(len(begin), UNPLACED, dtype=np.int64)
    steps = _steps(begin, end, horizon)
    ranks, size = len(steps.time), 1
    while size < ranks:
        size *= 2
    interval = np.full(size, -1, dtype=np.int64)
    interval[steps.rank[begin]] = np.arange(len(begin))
    coverage = _coverage(steps.rank[begin], steps.rank[end], ranks, size)
    # Intervals that may be the longest of a row, by their latest ends, and those that cannot begin early enough yet.
    ready = _tournament(np.full(size, FAR, dtype=np.int64))
    keys = np.full(size, FAR, dtype=np.int64)
    keys[steps.rank[begin]] = earliest
    waiting = _tournament(keys)

    freed = np.empty(ranks + 1, dtype=np.int64)
    rows = Rows(np.empty(ranks + 1, dtype=np.int64), np.empty(ranks + 1, dtype=np.int64))
    waiting_rows = _cut(rows, 0, 0, ranks - 1, freed[: _uncovered(coverage, freed)])
    placed = 0
    while waiting_rows > 0:
        waiting_rows -= 1
        lo, hi = rows.left[waiting_rows], rows.right[waiting_rows]
        begins, ends = steps.time[lo], steps.time[hi]
        _make_ready(waiting, ready, lo, hi, begins, latest, interval)
        longest = _least(ready, lo, hi)
        if longest < 0 or -ready.key[longest] <= ends:
            return Nesting(left, right, turn, begins, ends)
        _set_key(ready, longest, FAR)
        v = interval[longest]
        left[v], right[v], turn[v] = begins, ends, placed
        placed += 1
        _uncover(coverage, longest, steps.rank[end[v]])
        waiting_rows = _cut(rows, waiting_rows, lo, hi, freed[: _uncovered(coverage, freed)])
    return Nesting(left, right, turn, -1, -1)


@compiled
def _steps(begin: Int64, end: Int64, horizon: int) -> Steps:
    rank = np.zeros(horizon + 1, dtype=np.int64)
    for v in range(len(begin)):
        rank[begin[v]] = 1
        rank[end[v]] = 1
    ranks = 0
    time = np.empty(2 * len(begin), dtype=np.int64)
    for t in range(horizon + 1):
        if rank[t]:
            time[ranks] = t
            rank[t] = ranks
            ranks += 1
    return Steps(time[:ranks], rank)


@compiled
def _make_ready(
    waiting: Tournament, ready: Tournament, lo: int, hi: int, begins: int, latest: Int64, interval: Int64
) -> None:
    """Makes those intervals of a row candidates for the longest that can begin before it."""
    first = _least(waiting, lo, hi)
    while first >= 0 and waiting.key[first] < begins:
        _set_key(waiting, first, FAR)
        _set_key(ready, first, -latest[interval[first]])
        first = _least(waiting, lo, hi)


@compiled
def _cut(rows: Rows, count: int, lo: int, hi: int, freed: Int64) -> int:
    """Put what is left of a row on the stack, cut at the steps that are not covered any more; returns the stack's
    height."""
    begin = lo
    for step in freed:
        if step > begin:
            rows.left[count], rows.right[count] = begin, step
            count += 1
        begin = step + 1
    if begin < hi:
        rows.left[count], rows.right[count] = begin, hi
        count += 1
    return count


@compiled
def _tournament(key: Int64) -> Tournament:
    size = len(key)
    winner = np.full(2 * size, -1, dtype=np.int64)
    for leaf in range(size):
        if key[leaf] < FAR:
            winner[size + leaf] = leaf
    for node in range(size - 1, 0, -1):
        winner[node] = _less(winner[2 * node], winner[2 * node + 1], key)
    return Tournament(key, winner)


@inlined
def _less(one: int, other: int, key: Int64) -> int:
    if one < 0 or other < 0:
        return max(one, other)
    return one if key[one] <= key[other] else other


@inlined
def _set_key(of: Tournament, leaf: int, key: int) -> None:
    of.key[leaf] = key
    node = leaf + len(of.key)
    of.winner[node] = leaf if key < FAR else -1
    node //= 2
    while node:
        of.winner[node] = _less(of.winner[2 * node], of.winner[2 * node + 1], of.key)
        node //= 2


@inlined
def _least(of: Tournament, lo: int, hi: int) -> int:
    """The leaf in [lo, hi) with the least key, or -1."""
    best = -1
    lo += len(of.key)
    hi += len(of.key)
    while lo < hi:
        if lo & 1:
            best = _less(best, of.winner[lo], of.key)
            lo += 1
        if hi & 1:
            hi -= 1
            best = _less(best, of.winner[hi], of.key)
        lo //= 2
        hi //= 2
    return best


@compiled
def _coverage(begin: Int64, end: Int64, ranks: int, size: int) -> Coverage:
    """`begin` and `end`: ranks of the middle parts; `size`: a power of two, at least `ranks`."""
    covered = np.zeros(ranks + 1, dtype=np.int64)
    for v in range(len(begin)):
        covered[begin[v]] += 1
        covered[end[v]] -= 1
    cover = np.full(2 * size, FAR, dtype=np.int64)
    for at in range(ranks - 1):
        covered[at + 1] += covered[at]
        cover[size + at] = covered[at]
    for node in range(size - 1, 0, -1):
        cover[node] = min(cover[2 * node], cover[2 * node + 1])
    return Coverage(cover, np.zeros(size, dtype=np.int64))


@inlined
def _uncover(coverage: Coverage, lo: int, hi: int) -> None:
    """Count one cover less for the steps in [lo, hi)."""
    cover, deeper, size = coverage.cover, coverage.deeper, len(coverage.deeper)
    lo += size
    hi += size
    first, last = lo, hi - 1
    while lo < hi:
        if lo & 1:
            cover[lo] -= 1
            if lo < size:
                deeper[lo] -= 1
            lo += 1
        if hi & 1:
            hi -= 1
            cover[hi] -= 1
            if hi < size:
                deeper[hi] -= 1
        lo //= 2
        hi //= 2
    _renew(coverage, first)
    _renew(coverage, last)


@inlined
def _renew(coverage: Coverage, node: int) -> None:
    cover = coverage.cover
    node //= 2
    while node:
        cover[node] = min(cover[2 * node], cover[2 * node + 1]) + coverage.deeper[node]
        node //= 2


@inlined
def _uncovered(coverage: Coverage, found: Int64) -> int:
    """Steps that are not covered, in order, each found once; returns how many."""
    cover, size = coverage.cover, len(coverage.deeper)
    count = 0
    while cover[1] == 0:
        node = 1
        above = 0
        while node < size:
            above += coverage.deeper[node]
            node *= 2
            if cover[node] + above != 0:
                node += 1
        found[count] = node - size
        count += 1
        cover[node] = FAR
        _renew(coverage, node)
    return count
