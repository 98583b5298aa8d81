"""Intervals that must be nested: each is known to cover its middle part, and may be longer at both ends.

Of intervals whose middle parts overlap in a row, the longest one holds all others, so it must be able to begin before
every middle part and to end behind all of them. Whichever can do that may be the longest: to make it longer than all
others, and the others no longer than the row, leaves everything nested as it was. Without it, the row falls into
shorter ones, to which the same applies; if nobody can be the longest, the row is why there is no nesting.

Source: Lee and Mathur, arXiv 2410.04581, and Abdulla and others, arXiv 2509.17795, decide stacks by the same idea;
the trees are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled

FAR = 1 << 60
"""Greater than every time and every count."""

UNPLACED = -1


class Nesting(NamedTuple):
    """A way to nest them, or the row in which nobody can be the longest."""

    left: Int64
    """The interval may begin right before this time and contain all that begin there and have a later turn."""
    right: Int64
    """It may end right behind this time."""
    turn: Int64
    """Longer ones come before those that they contain; UNPLACED in and below a row without a longest one."""
    stuck_left: int
    """The row without a longest one lasts from here; -1 if all are nested."""
    stuck_right: int


@compiled
def nested(earliest: Int64, begin: Int64, end: Int64, latest: Int64, horizon: int) -> Nesting:
    """Nest intervals that begin in (earliest, begin) and end in (end, latest); begin < end.

    Times are from 0 to `horizon`, and no two of those that begin are equal. Cost: O(horizon + n log n).
    """
    count = len(begin)
    left = np.full(count, -1, dtype=np.int64)
    right = np.full(count, -1, dtype=np.int64)
    turn = np.full(count, UNPLACED, dtype=np.int64)
    mark = np.zeros(horizon + 1, dtype=np.int64)
    for v in range(count):
        mark[begin[v]] = 1
        mark[end[v]] = 1
    ranks = 0
    times = np.empty(2 * count, dtype=np.int64)
    for t in range(horizon + 1):
        if mark[t]:
            times[ranks] = t
            mark[t] = ranks
            ranks += 1
    size = 1
    while size < ranks:
        size *= 2
    who = np.full(size, -1, dtype=np.int64)
    cover = np.full(2 * size, FAR, dtype=np.int64)
    deeper = np.zeros(size, dtype=np.int64)
    steps = np.zeros(ranks + 1, dtype=np.int64)
    waiting_key = np.full(size, FAR, dtype=np.int64)
    for v in range(count):
        at = mark[begin[v]]
        who[at] = v
        waiting_key[at] = earliest[v]
        steps[at] += 1
        steps[mark[end[v]]] -= 1
    for at in range(ranks - 1):
        steps[at + 1] += steps[at]
        cover[size + at] = steps[at]
    for node in range(size - 1, 0, -1):
        cover[node] = min(cover[2 * node], cover[2 * node + 1])
    waiting = _tournament(waiting_key)
    ready_key = np.full(size, FAR, dtype=np.int64)
    ready = _tournament(ready_key)

    lefts = np.empty(ranks + 1, dtype=np.int64)
    rights = np.empty(ranks + 1, dtype=np.int64)
    freed = np.empty(ranks + 1, dtype=np.int64)
    rows = _rows_between(0, ranks - 1, freed, _uncovered(cover, deeper, freed), lefts, rights, 0)
    placed = 0
    while rows > 0:
        rows -= 1
        lo, hi = lefts[rows], rights[rows]
        begins, ends = times[lo], times[hi]
        first = _least(waiting, waiting_key, lo, hi)
        while first >= 0 and waiting_key[first] < begins:
            waiting_key[first] = FAR
            _replay(waiting, waiting_key, first)
            ready_key[first] = -latest[who[first]]
            _replay(ready, ready_key, first)
            first = _least(waiting, waiting_key, lo, hi)
        longest = _least(ready, ready_key, lo, hi)
        if longest < 0 or -ready_key[longest] <= ends:
            return Nesting(left, right, turn, begins, ends)
        ready_key[longest] = FAR
        _replay(ready, ready_key, longest)
        v = who[longest]
        left[v], right[v], turn[v] = begins, ends, placed
        placed += 1
        _uncover(cover, deeper, longest, mark[end[v]])
        rows = _rows_between(lo, hi, freed, _uncovered(cover, deeper, freed), lefts, rights, rows)
    return Nesting(left, right, turn, -1, -1)


@compiled
def _rows_between(lo: int, hi: int, freed: Int64, frees: int, lefts: Int64, rights: Int64, rows: int) -> int:
    """Put on the pile what is left of a row, cut at the steps that nobody covers any more."""
    begin = lo
    for i in range(frees):
        if freed[i] > begin:
            lefts[rows], rights[rows] = begin, freed[i]
            rows += 1
        begin = freed[i] + 1
    if begin < hi:
        lefts[rows], rights[rows] = begin, hi
        rows += 1
    return rows


# A tournament: each node holds the leaf with the least key below it, -1 if no key there is less than FAR.


@compiled
def _tournament(key: Int64) -> Int64:
    size = len(key)
    tree = np.full(2 * size, -1, dtype=np.int64)
    for leaf in range(size):
        if key[leaf] < FAR:
            tree[size + leaf] = leaf
    for node in range(size - 1, 0, -1):
        tree[node] = _winner(tree[2 * node], tree[2 * node + 1], key)
    return tree


@compiled
def _winner(one: int, other: int, key: Int64) -> int:
    if one < 0 or other < 0:
        return max(one, other)
    return one if key[one] <= key[other] else other


@compiled
def _replay(tree: Int64, key: Int64, leaf: int) -> None:
    node = leaf + len(key)
    tree[node] = leaf if key[leaf] < FAR else -1
    node //= 2
    while node:
        tree[node] = _winner(tree[2 * node], tree[2 * node + 1], key)
        node //= 2


@compiled
def _least(tree: Int64, key: Int64, lo: int, hi: int) -> int:
    """The leaf in [lo, hi) with the least key, or -1."""
    best = -1
    lo += len(key)
    hi += len(key)
    while lo < hi:
        if lo & 1:
            best = _winner(best, tree[lo], key)
            lo += 1
        if hi & 1:
            hi -= 1
            best = _winner(best, tree[hi], key)
        lo //= 2
        hi //= 2
    return best


# How often each step of time is covered: a node holds the least number below it, without what `deeper` adds to it and
# to all nodes below for the nodes above it.


@compiled
def _uncover(cover: Int64, deeper: Int64, lo: int, hi: int) -> None:
    """Once less in [lo, hi)."""
    size = len(deeper)
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
    _renew(cover, deeper, first)
    _renew(cover, deeper, last)


@compiled
def _renew(cover: Int64, deeper: Int64, node: int) -> None:
    node //= 2
    while node:
        cover[node] = min(cover[2 * node], cover[2 * node + 1]) + deeper[node]
        node //= 2


@compiled
def _uncovered(cover: Int64, deeper: Int64, found: Int64) -> int:
    """Steps that nobody covers, in order, each told once; returns how many."""
    size = len(deeper)
    count = 0
    while cover[1] == 0:
        node = 1
        above = 0
        while node < size:
            above += deeper[node]
            node *= 2
            if cover[node] + above != 0:
                node += 1
        found[count] = node - size
        count += 1
        cover[node] = FAR
        _renew(cover, deeper, node)
    return count
