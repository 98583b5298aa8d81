"""The cycle that names a knot: a short one of the strongest name that the knot has.

Every search begins with an edge that the cycle must have, and follows a shortest path back. What is exact:

  - Knots without RW edges, and G2-item: any cycle has the name that is looked for, and one is always found.
  - G-single-item: a shortest path visits nothing twice, so that a closed walk with one RW edge is a cycle.
  - G-nonadjacent-item: a shortest closed walk may pass a transaction twice. Cut in two there, one half is a shorter
    walk of the same sort, or has no RW edge at all. So where no G0 or G1c is, the shortest walk of all is a cycle. Else
    all cycles of a knot of up to SMALL transactions are tried, and in greater ones the search may be given up.

A search is given up when patience ends; then the next weaker name is looked for, and it is told which one may have been
missed. The last one, G2-item, is never given up before it has a cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.elle.graph.cycles import name_number
from checkers.elle.graph.knots import (
    INDEFINITELY,
    KIND_BITS,
    KIND_MASK,
    PROCESS,
    REALTIME,
    RW,
    SPACED,
    WR,
    WW,
    Graph,
    knots,
    part,
)
from checkers.kernels.columns import Int8, Int32, Int64
from checkers.kernels.compiled import compiled

MISSED_SINGLE = 1
MISSED_NONADJACENT = 2
"""Bits: which search was given up."""

SMALL = 24

DEPENDENCIES = 1 << WW | 1 << WR


class Patience(NamedTuple):
    """When a search in a knot is given up. One path is always followed to its end."""

    beginnings: int = 2_000
    edges: int = 50_000_000
    steps: int = 300_000
    """Of trying all cycles of a small knot."""


@compiled
def _order(keys: Int64) -> Int64:
    """Positions in ascending order of keys below 2^32, then of themselves."""
    combined = keys << 31 | np.arange(len(keys))
    combined.sort()
    return combined & 0x7FFFFFFF


@compiled
def _followers(graph: Graph) -> tuple[Int64, Int32, Int32]:
    """Transactions by process; for each where in that list those of its process that came later begin and stop."""
    start, end, process = graph.start, graph.end, graph.process
    nodes = len(start)
    listed = _order(process.astype(np.int64))
    follow = np.empty(nodes, dtype=np.int32)
    stop = np.empty(nodes, dtype=np.int32)
    low = 0
    while low < nodes:
        high = low
        while high < nodes and process[listed[high]] == process[listed[low]]:
            high += 1
        for i in range(low, high):
            t = listed[i]
            stop[t] = high
            j = high if end[t] == INDEFINITELY else i + 1
            while j < high and start[listed[j]] <= end[t]:
                j += 1
            follow[t] = j
        low = high
    return listed, follow, stop


@compiled
def _beginnings(graph: Graph, allowed: int, apart: Int32) -> tuple[Int32, Int32]:
    """Sources and entries of edges to begin with, those first that span least. With `apart` (knots of states): RW edges
    inside one of them; else all RW edges if RW is allowed; else those that run against positions."""
    nodes = len(graph.start)
    source = np.empty(len(graph.entries), dtype=np.int32)
    entry = np.empty(len(graph.entries), dtype=np.int32)
    span = np.empty(len(graph.entries), dtype=np.int64)
    position = graph.end.astype(np.int64)
    for u in range(nodes):
        if graph.end[u] == INDEFINITELY:
            position[u] = graph.start[u]
    count = 0
    for u in range(nodes):
        for i in range(graph.first[u], graph.first[u + 1]):
            kind, v = graph.entries[i] & KIND_MASK, graph.entries[i] >> KIND_BITS
            if len(apart):
                chosen = kind == RW and apart[u] >= 0 and apart[u] == apart[nodes + v]
            elif allowed >> RW & 1:
                chosen = kind == RW
            else:
                chosen = kind != PROCESS and allowed >> kind & 1 == 1 and position[u] > position[v]
            if chosen:
                source[count], entry[count] = u, graph.entries[i]
                span[count] = abs(position[u] - position[v])
                count += 1
    order = _order(span[:count])
    return source[order], entry[order]


@compiled
def _shortest(graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience) -> tuple[Int8, Int32, bool]:
    """The shortest cycle that begins with one of the given edges and goes on with allowed ones: its kinds and its
    transactions, empty if none was found; and then whether there may be one."""
    first, entries, after = graph.first, graph.entries, graph.after
    listed, follow, stop = _followers(graph)
    nodes = len(after)
    spaced = allowed & SPACED != 0
    states = 2 * nodes if spaced else nodes
    came = np.full(states, -1, dtype=np.int32)
    by = np.empty(states, dtype=np.int8)
    queue = np.empty(states, dtype=np.int32)
    swept = np.arange(nodes + 1)
    passed = np.full(nodes, -1, dtype=np.int32)
    kinds = np.empty(0, dtype=np.int8)
    cycle = np.empty(0, dtype=np.int32)
    best = 4 * nodes
    cost = 0
    maybe = False
    for i in range(len(source)):
        if best == 2:
            break
        if i and (i >= patience.beginnings or cost > patience.edges):
            maybe = True
            break
        u = source[i]
        v = entry[i] >> KIND_BITS
        begin = v + nodes if spaced and entry[i] & KIND_MASK == RW else v
        queue[0] = begin
        came[begin] = begin
        head, tail, level, length = 0, 1, 1, 0
        gate = nodes
        found = False
        while head < tail and not found and length < best - 2:
            length += 1
            while head < level and not found:
                state = queue[head]
                head += 1
                x = state % nodes
                cost += first[x + 1] - first[x] + 1
                for j in range(first[x], first[x + 1]):
                    kind = entries[j] & KIND_MASK
                    if kind == PROCESS or not allowed >> kind & 1:
                        continue
                    y = entries[j] >> KIND_BITS
                    if kind == RW and spaced:
                        if state >= nodes:
                            continue
                        y += nodes
                    if came[y] < 0:
                        came[y], by[y], queue[tail] = state, kind, y
                        tail += 1
                        found |= y == u
                # What is later in an order is all that is behind a place: each place is passed once.
                if allowed >> PROCESS & 1:
                    for j in range(follow[x], swept[stop[x]]):
                        y = listed[j]
                        if came[y] < 0:
                            came[y], by[y], queue[tail] = state, PROCESS, y
                            tail += 1
                            found |= y == u
                    swept[stop[x]] = min(swept[stop[x]], follow[x])
                if allowed >> REALTIME & 1:
                    cost += max(0, gate - after[x])
                    for y in range(after[x], gate):
                        if came[y] < 0:
                            came[y], by[y], queue[tail] = state, REALTIME, y
                            tail += 1
                            found |= y == u
                    gate = min(gate, after[x])
            level = tail
        if found:
            path_kinds = np.empty(length + 1, dtype=np.int8)
            path = np.empty(length + 1, dtype=np.int32)
            path_kinds[0] = entry[i] & KIND_MASK
            path[0] = u
            state = u
            for at in range(length, 0, -1):
                path_kinds[at] = by[state]
                state = came[state]
                path[at] = state % nodes
            twice = False
            for x in path:
                twice |= passed[x] == i
                passed[x] = i
            if twice:
                maybe = True
            else:
                kinds, cycle, best = path_kinds, path, length + 1
        for j in range(tail):
            came[queue[j]] = -1
            swept[stop[queue[j] % nodes]] = stop[queue[j] % nodes]
    return kinds, cycle, maybe and len(cycle) == 0


@compiled
def _any_nonadjacent(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience
) -> tuple[Int8, Int32, bool]:
    """The same for a small knot and RW edges none of which follows another, by trying all cycles, short ones first."""
    first, entries, start, end, process = graph.first, graph.entries, graph.start, graph.end, graph.process
    nodes = len(start)
    other = np.full((nodes, nodes), -1, dtype=np.int8)
    anti = np.zeros((nodes, nodes), dtype=np.bool_)
    for x in range(nodes):
        for y in range(nodes):
            if end[x] < start[y]:
                if allowed >> PROCESS & 1 and process[x] == process[y]:
                    other[x, y] = PROCESS
                elif allowed >> REALTIME & 1:
                    other[x, y] = REALTIME
        for j in range(first[x], first[x + 1]):
            kind = entries[j] & KIND_MASK
            if kind == RW:
                anti[x, entries[j] >> KIND_BITS] = True
            elif kind != PROCESS:
                other[x, entries[j] >> KIND_BITS] = kind
    path = np.empty(nodes + 1, dtype=np.int32)
    kinds = np.empty(nodes + 1, dtype=np.int8)
    tried = np.empty(nodes + 1, dtype=np.int32)
    on = np.zeros(nodes, dtype=np.bool_)
    steps = 0
    for length in range(3, nodes + 1):
        for i in range(len(source)):
            on[:] = False
            path[0], path[1] = source[i], entry[i] >> KIND_BITS
            kinds[0] = RW
            on[path[0]] = on[path[1]] = True
            tried[1] = 0
            depth = 1
            while depth:
                x = path[depth]
                if depth == length - 1:
                    if other[x, path[0]] >= 0:
                        kinds[depth] = other[x, path[0]]
                        return kinds[:length].copy(), path[:length].copy(), False
                    tried[depth] = 2 * nodes
                steps += 1
                if steps > patience.steps:
                    return kinds[:0].copy(), path[:0].copy(), True
                while tried[depth] < 2 * nodes:
                    y = tried[depth] % nodes
                    kind = RW if tried[depth] >= nodes else other[x, y]
                    possible = kind >= 0 and (kind != RW or (anti[x, y] and kinds[depth - 1] != RW))
                    if possible and not on[y]:
                        break
                    tried[depth] += 1
                if tried[depth] == 2 * nodes:
                    on[x] = False
                    depth -= 1
                    continue
                kinds[depth] = RW if tried[depth] >= nodes else other[x, tried[depth] % nodes]
                depth += 1
                path[depth] = tried[depth - 1] % nodes
                on[path[depth]] = True
                tried[depth - 1] += 1
                tried[depth] = 0
    return kinds[:0].copy(), path[:0].copy(), False


@compiled
def _witness(graph: Graph, allowed: int, patience: Patience) -> tuple[Int8, Int32, int]:
    """Of a knot over the edges of the allowed kinds: kinds and transactions of the cycle that names it, and which
    searches were given up. If RW is allowed, the knot has such an edge."""
    nodes = len(graph.start)
    missed = 0
    if allowed >> RW & 1:
        apart = knots(graph, allowed | SPACED, np.ones(nodes, dtype=np.bool_))
        source, entry = _beginnings(graph, allowed, apart)
        if len(source):
            kinds, cycle, maybe = _shortest(graph, source, entry, allowed & ~(1 << RW), patience)
            missed |= MISSED_SINGLE * maybe
            if len(cycle) == 0:
                kinds, cycle, maybe = _shortest(graph, source, entry, allowed | SPACED, patience)
                if maybe and nodes <= SMALL:
                    kinds, cycle, maybe = _any_nonadjacent(graph, source, entry, allowed, patience)
                missed |= MISSED_NONADJACENT * maybe
            if len(cycle):
                return kinds, cycle, missed
    source, entry = _beginnings(graph, allowed, np.empty(0, dtype=np.int32))
    kinds, cycle, _ = _shortest(graph, source, entry, allowed, patience)
    return kinds, cycle, missed


@compiled
def named(
    graph: Graph, members: Int32, bounds: Int64, allowed: int, patience: Patience
) -> tuple[Int8, Int32, Int32, Int8]:
    """Knots are members[bounds[i]:bounds[i + 1]], each ascending. Of each: its name's number, the length of its
    witness, the first transaction of that, and which searches were given up."""
    count = len(bounds) - 1
    name = np.empty(count, dtype=np.int8)
    length = np.empty(count, dtype=np.int32)
    least = np.empty(count, dtype=np.int32)
    missed = np.empty(count, dtype=np.int8)
    local = np.full(len(graph.start), -1, dtype=np.int32)
    for i in range(count):
        mine = members[bounds[i] : bounds[i + 1]]
        kinds, cycle, missed[i] = _witness(part(graph, mine, local), allowed, patience)
        name[i] = name_number(kinds)
        length[i] = len(cycle)
        least[i] = mine[cycle.min()]
    return name, length, least, missed


def witness(graph: Graph, members: Int32, allowed: int, patience: Patience) -> tuple[Int8, Int32]:
    """Kinds and transactions of the cycle that names a knot, beginning at the first of its transactions."""
    local = np.full(len(graph.start), -1, dtype=np.int32)
    kinds, cycle, _ = _witness(part(graph, members, local), allowed, patience)
    turn = -int(np.argmin(cycle))
    return np.roll(kinds, turn), members[np.roll(cycle, turn)]
