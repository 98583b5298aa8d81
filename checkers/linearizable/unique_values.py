"""Registers to which no value is written twice: decided in O(n log n).

Whoever reads a value has read from the one operation that wrote it. All operations on one value form a cluster,
which must take effect without another cluster between; a cas ties the cluster of the value that it expects to the
one that it writes, so that clusters form chains. What must be shown is that chains can be put in a row.

A chain must come before another if one of its operations ended before one of the other's began: if the least end
of the one is below the greatest start of the other. Such a relation has a cycle only if two chains are each before the
other, and that is seen from their zones: [least end, greatest start] is a forward zone; where the start is less, a
backward zone. There is a row exactly if no two forward zones overlap and no backward zone lies inside a forward one.

An indefinite write that somebody saw (read, or as the expected value of a cas that happened) did happen, and never
ends; one that nobody saw may be left out.

Source: Gibbons and Korach, Testing Shared Memories, SIAM Journal on Computing 26 (1997), for reads and writes; the
chains of a cas are ours, and held against a search through all orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Bool, Int8, Int64, run_starts
from checkers.kernels.compiled import compiled
from checkers.linearizable.operations import CAS, CAS_MISS, INITIAL, NEVER, READ, Operations, shown


@dataclass(frozen=True)
class Violation:
    """Why one register cannot be linearized: operation numbers, and a sentence."""

    operations: set[int]
    because: str


BEFORE_ALL = -1
"""When the register got its initial value."""

LINKS = 16
"""At most so many cas between two operations of a chain are named as witnesses."""


def has_unique_values(operations: Operations) -> bool:
    """No value is written twice, none is the initial one, and every failed cas tells nothing."""
    if np.any(operations.f == CAS_MISS):
        return False
    written = operations.value[operations.f != READ]
    return not bool(np.any(written == INITIAL)) and len(np.unique(written)) == len(written)


def violation(operations: Operations) -> Violation | None:
    """None if the register is linearizable. The values written must be unique."""
    values = len(operations.values)
    writer = np.full(values, -1, dtype=np.int64)
    writes = np.flatnonzero(operations.f != READ)
    writer[operations.value[writes]] = writes
    happened = _happened(operations.definite, operations.f, operations.expected, operations.value, writer)
    kept = np.flatnonzero(happened)
    found = (
        _unwritten(operations, kept, writer)
        or _expected_twice(operations, kept)
        or _out_of_order(operations, kept, writer)
    )
    return found and Violation(_proven(operations, kept, found.operations), found.because)


def _proven(operations: Operations, kept: Int64, witnesses: set[int]) -> set[int]:
    """With the indefinite ones among them go those that saw them, for without these they need not have happened."""
    sees = np.where(operations.f[kept] == READ, operations.value[kept], operations.expected[kept])
    proven = set(witnesses)
    for number in witnesses:
        at = number
        for _ in range(LINKS):
            if operations.end[at] != NEVER:
                break
            seers = kept[sees == operations.value[at]]
            at = int(seers[np.argmin(operations.end[seers])])
            proven.add(at)
    return proven


@compiled
def _happened(definite: Bool, f: Int8, expected: Int64, value: Int64, writer: Int64) -> Bool:
    """Which operations certainly happened: they are definite, or their value was seen by one that happened."""
    happened = definite.copy()
    for i in range(len(f)):
        if not definite[i]:
            continue
        seen = value[i] if f[i] == READ else expected[i]
        while seen >= 0:
            w = writer[seen]
            if w < 0 or happened[w]:
                break
            happened[w] = True
            seen = expected[w]
    return happened


def _unwritten(operations: Operations, kept: Int64, writer: Int64) -> Violation | None:
    """A value was seen that nobody wrote."""
    seen = np.where(operations.f[kept] == READ, operations.value[kept], operations.expected[kept])
    bad = kept[(seen > INITIAL) & (writer[np.maximum(seen, 0)] < 0)]
    if len(bad) == 0:
        return None
    first = int(bad[0])
    value = operations.value[first] if operations.f[first] == READ else operations.expected[first]
    return Violation(
        {first}, f"{operations.describe(first)} saw {shown(operations.values[value])}, which nobody ever wrote"
    )


def _expected_twice(operations: Operations, kept: Int64) -> Violation | None:
    """Two cas replaced the same value, which was there only once."""
    swaps = kept[operations.f[kept] == CAS]
    order = swaps[np.argsort(operations.expected[swaps], kind="stable")]
    expected = operations.expected[order]
    again = np.flatnonzero(expected[1:] == expected[:-1])
    if len(again) == 0:
        return None
    one, other = int(order[again[0]]), int(order[again[0] + 1])
    value = shown(operations.values[operations.expected[one]])
    return Violation(
        {one, other},
        f"{operations.describe(one)} and {operations.describe(other)} both replaced {value}, which was there only once",
    )


def _out_of_order(operations: Operations, kept: Int64, writer: Int64) -> Violation | None:
    root, depth = _chains(operations.expected, writer)
    circular = kept[root[operations.value[kept]] < 0]
    if len(circular):
        seen = int(circular[np.argmin(operations.end[circular])])
        return Violation(
            {seen, *(int(n) for n in circular[operations.f[circular] == CAS][:LINKS])},
            f"{operations.describe(seen)} saw a value of a circle of cas operations, each of which needs the last",
        )
    value = operations.value[kept]
    # Within a chain: the write of a value, its reads, the cas that replaces it, the reads of that one's value, …
    level = 2 * depth[value] + (operations.f[kept] == READ)
    order = np.lexsort((level, root[value]))
    kept, level, root_of = kept[order], level[order], root[value][order]
    start, end = operations.start[kept], operations.end[kept]
    chains = np.append(np.flatnonzero(run_starts(root_of)), len(kept))

    late, early = _inside_chains(chains, level, start, end)
    if late >= 0:
        return _contradiction(operations, writer, int(kept[late]), int(kept[early]))
    first_end, last_start = _extremes(chains, start, end)
    least = np.where(root_of[chains[:-1]] == INITIAL, BEFORE_ALL, end[first_end])
    one, other = _conflict(least, start[last_start])
    if one < 0:
        return None
    return _no_row(operations, writer, _Zones(least, kept[first_end], kept[last_start]), one, other)


@compiled
def _chains(expected: Int64, writer: Int64) -> tuple[Int64, Int64]:
    """For each value the value at the root of its chain, -1 if the chain is a circle, and its distance from there."""
    root = np.full(len(writer), -2, dtype=np.int64)
    depth = np.zeros(len(writer), dtype=np.int64)
    path = np.empty(len(writer), dtype=np.int64)
    for v in range(len(writer)):
        length = 0
        at = v
        while root[at] == -2:
            root[at] = -1
            path[length] = at
            length += 1
            w = writer[at]
            if w < 0 or expected[w] < 0:
                root[at] = at
                break
            at = expected[w]
        # Where the walk met itself, root is still -1 there, and stays so for the whole path.
        for step in range(length - 1, -1, -1):
            u = path[step]
            if root[u] != u:
                root[u] = root[at]
                depth[u] = depth[at] + 1
            at = u
    return root, depth


@compiled
def _inside_chains(chains: Int64, level: Int64, start: Int64, end: Int64) -> tuple[int, int]:
    """Positions of an operation that began after one that must follow it had ended; (-1, -1) if there is none."""
    for c in range(len(chains) - 1):
        latest = -1
        latest_below = -1
        for i in range(chains[c], chains[c + 1]):
            if i > chains[c] and level[i] != level[i - 1]:
                latest_below = latest
            if latest_below >= 0 and start[latest_below] > end[i]:
                return latest_below, i
            if latest < 0 or start[i] > start[latest]:
                latest = i
    return -1, -1


@compiled
def _extremes(chains: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """For each chain the positions of its least end and its greatest start."""
    first_end = np.empty(len(chains) - 1, dtype=np.int64)
    last_start = np.empty(len(chains) - 1, dtype=np.int64)
    for c in range(len(chains) - 1):
        e = s = chains[c]
        for i in range(chains[c], chains[c + 1]):
            if end[i] < end[e]:
                e = i
            if start[i] > start[s]:
                s = i
        first_end[c] = e
        last_start[c] = s
    return first_end, last_start


def _conflict(least: Int64, greatest: Int64) -> tuple[int, int]:
    """Two chains that must each come before the other; (-1, -1) if there are none."""
    forward = np.flatnonzero(least < greatest)
    forward = forward[np.argsort(least[forward], kind="stable")]
    if len(forward) == 0:
        return -1, -1
    overlapping = np.flatnonzero(least[forward[1:]] < greatest[forward[:-1]])
    if len(overlapping):
        return int(forward[overlapping[0]]), int(forward[overlapping[0] + 1])
    backward = np.flatnonzero(least > greatest)
    around = np.searchsorted(least[forward], greatest[backward]) - 1
    inside = np.flatnonzero((around >= 0) & (greatest[forward[around]] > least[backward]))
    if len(inside):
        return int(forward[around[inside[0]]]), int(backward[inside[0]])
    return -1, -1


@dataclass(frozen=True)
class _Zones:
    """By chain: its least end, and which operations have its least end and its greatest start."""

    least: Int64
    first_ended: Int64
    last_started: Int64


def _no_row(operations: Operations, writer: Int64, zones: _Zones, one: int, other: int) -> Violation:
    sentences = []
    witnesses: set[int] = set()
    for before, after in ((one, other), (other, one)):
        began = int(zones.last_started[after])
        witnesses |= _linked(operations, writer, began, int(zones.first_ended[after]))
        if zones.least[before] == BEFORE_ALL:
            first = shown(operations.values[INITIAL])
            sentences.append(
                f"{first} came before {_value(operations, began)}, because every register begins as {first}"
            )
            continue
        ended = int(zones.first_ended[before])
        sentences.append(
            f"{_value(operations, ended)} came before {_value(operations, began)}, because "
            f"{operations.describe(ended)} had ended when {operations.describe(began)} began"
        )
    return Violation(witnesses, "; but ".join(sentences))


def _linked(operations: Operations, writer: Int64, one: int, other: int) -> set[int]:
    """Two operations of a chain, who wrote their values, and the cas that lead from the one value to the other."""
    paths = []
    for number in (one, other):
        path = []
        at = int(operations.value[number])
        while at >= 0 and writer[at] >= 0:
            path.append(int(writer[at]))
            at = int(operations.expected[writer[at]])
        paths.append(path)
    shared = set(paths[0]) & set(paths[1])
    between = [n for path in paths for n in path if n not in shared]
    nearest = next((n for n in paths[0] if n in shared), None)
    return {one, other, *between[:LINKS], *([] if nearest is None else [nearest])}


def _contradiction(operations: Operations, writer: Int64, late: int, early: int) -> Violation:
    return Violation(
        _linked(operations, writer, late, early),
        f"{operations.describe(early)} saw the effect of {operations.describe(late)}, which had not begun by then"
        if operations.value[late] == operations.value[early]
        else f"{operations.describe(early)} tells that {_value(operations, late)} had been replaced by "
        f"{_value(operations, early)}, but {operations.describe(late)} began after that",
    )


def _value(operations: Operations, number: int) -> str:
    return shown(operations.values[operations.value[number]])
