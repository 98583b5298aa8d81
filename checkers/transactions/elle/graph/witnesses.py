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

from checkers.kernels.columns import Int8, Int32, Int64
from checkers.kernels.sorting import ascending
from checkers.transactions.elle.graph.cycles import name_number
from checkers.transactions.elle.graph.strong_components import (
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
from harness.compiled import compiled

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
def _followers(graph: Graph) -> tuple[Int64, Int32, Int32]:
    """Transactions by process; for each where in that list those of its process that came later begin and stop."""
    start, end, process = graph.start, graph.end, graph.process
    nodes = len(start)
    key = np.empty(nodes, dtype=np.int64)
    for u in range(nodes):
        key[u] = process[u]
    listed = ascending(key)
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
    first, entries, start, end = graph.first, graph.entries, graph.start, graph.end
    nodes = len(start)
    chosen = np.empty(len(entries), dtype=np.int64)
    source = np.empty(len(entries), dtype=np.int32)
    span = np.empty(len(entries), dtype=np.int64)
    count = 0
    for u in range(nodes):
        for i in range(first[u], first[u + 1]):
            kind, v = entries[i] & KIND_MASK, entries[i] >> KIND_BITS
            ahead = np.int64(start[u] if end[u] == INDEFINITELY else end[u])
            ahead -= start[v] if end[v] == INDEFINITELY else end[v]
            if len(apart):
                suitable = kind == RW and apart[u] >= 0 and apart[u] == apart[nodes + v]
            elif allowed >> RW & 1:
                suitable = kind == RW
            else:
                suitable = kind != PROCESS and allowed >> kind & 1 == 1 and ahead > 0
            if suitable:
                chosen[count] = i
                source[count] = u
                span[count] = abs(ahead)
                count += 1
    order = ascending(span[:count])
    sources = np.empty(count, dtype=np.int32)
    begun = np.empty(count, dtype=np.int32)
    for i in range(count):
        sources[i] = source[order[i]]
        begun[i] = entries[chosen[order[i]]]
    return sources, begun


@compiled
def _shortest(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience, kinds: Int8, cycle: Int32
) -> tuple[int, bool]:
    """The shortest cycle that begins with one of the given edges and goes on with allowed ones: its length, 0 if none
    was found, and then whether there may be one. Its kinds and transactions are written to `kinds` and `cycle`."""
    first, entries, after = graph.first, graph.entries, graph.after
    listed, follow, stop = _followers(graph)
    nodes = len(after)
    spaced = allowed & SPACED != 0
    states = 2 * nodes if spaced else nodes
    came = np.full(states, -1, dtype=np.int32)
    by = np.empty(states, dtype=np.int8)
    queue = np.empty(states, dtype=np.int32)
    swept = np.empty(nodes + 1, dtype=np.int32)
    for x in range(nodes + 1):
        swept[x] = x
    passed = np.full(nodes, -1, dtype=np.int32)
    best = 0
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
        while head < tail and not found and (best == 0 or length < best - 2):
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
            twice = False
            state = u
            for _ in range(length):
                twice |= passed[state % nodes] == i
                passed[state % nodes] = i
                state = came[state]
            twice |= passed[state % nodes] == i
            if twice:
                maybe = True
            else:
                best = length + 1
                kinds[0], cycle[0] = entry[i] & KIND_MASK, u
                state = u
                for at in range(length, 0, -1):
                    kinds[at] = by[state]
                    state = came[state]
                    cycle[at] = state % nodes
        for j in range(tail):
            came[queue[j]] = -1
            swept[stop[queue[j] % nodes]] = stop[queue[j] % nodes]
    return best, maybe and best == 0


@compiled
def _any_nonadjacent(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience, kinds: Int8, cycle: Int32
) -> tuple[int, bool]:
    """The same for a small knot and RW edges none of which follows another, by trying all cycles, short ones first."""
    first, entries, start, end, process = graph.first, graph.entries, graph.start, graph.end, graph.process
    nodes = len(start)
    # From x to y: other[x * nodes + y].
    other = np.full(nodes * nodes, -1, dtype=np.int8)
    anti = np.zeros(nodes * nodes, dtype=np.bool_)
    for x in range(nodes):
        for y in range(nodes):
            if end[x] < start[y]:
                if allowed >> PROCESS & 1 and process[x] == process[y]:
                    other[x * nodes + y] = PROCESS
                elif allowed >> REALTIME & 1:
                    other[x * nodes + y] = REALTIME
        for j in range(first[x], first[x + 1]):
            kind = entries[j] & KIND_MASK
            at = x * nodes + (entries[j] >> KIND_BITS)
            if kind == RW:
                anti[at] = True
            elif kind != PROCESS:
                other[at] = kind
    tried = np.empty(nodes, dtype=np.int32)
    on = np.zeros(nodes, dtype=np.bool_)
    steps = 0
    for length in range(3, nodes + 1):
        for i in range(len(source)):
            for x in range(nodes):
                on[x] = False
            cycle[0], cycle[1] = source[i], entry[i] >> KIND_BITS
            kinds[0] = RW
            on[cycle[0]] = on[cycle[1]] = True
            tried[1] = 0
            depth = 1
            while depth:
                x = cycle[depth]
                if depth == length - 1:
                    if other[x * nodes + cycle[0]] >= 0:
                        kinds[depth] = other[x * nodes + cycle[0]]
                        return length, False
                    tried[depth] = 2 * nodes
                steps += 1
                if steps > patience.steps:
                    return 0, True
                while tried[depth] < 2 * nodes:
                    y = tried[depth] % nodes
                    kind = RW if tried[depth] >= nodes else other[x * nodes + y]
                    possible = kind >= 0 and (kind != RW or (anti[x * nodes + y] and kinds[depth - 1] != RW))
                    if possible and not on[y]:
                        break
                    tried[depth] += 1
                if tried[depth] == 2 * nodes:
                    on[x] = False
                    depth -= 1
                    continue
                y = tried[depth] % nodes
                kinds[depth] = RW if tried[depth] >= nodes else other[x * nodes + y]
                tried[depth] += 1
                depth += 1
                cycle[depth] = y
                on[y] = True
                tried[depth] = 0
    return 0, False


@compiled
def named(
    graph: Graph, members: Int32, bounds: Int64, allowed: int, patience: Patience
) -> tuple[Int8, Int32, Int32, Int8, Int8, Int32]:
    """Knots over the edges of the allowed kinds are members[bounds[i]:bounds[i + 1]], each ascending; if RW is allowed,
    they have such an edge. Of each: its name's number, the length of its witness, the first transaction of that, and
    which searches were given up; and then kinds and transactions of all witnesses, where each knot's begin at
    bounds[i]."""
    count = len(bounds) - 1
    name = np.empty(count, dtype=np.int8)
    length = np.empty(count, dtype=np.int32)
    least = np.empty(count, dtype=np.int32)
    missed = np.zeros(count, dtype=np.int8)
    kinds = np.empty(len(members), dtype=np.int8)
    cycles = np.empty(len(members), dtype=np.int32)
    local = np.full(len(graph.start), -1, dtype=np.int32)
    active = np.full(len(graph.start), True, dtype=np.bool_)
    nowhere = np.empty(0, dtype=np.int32)
    anti = allowed & 1 << RW != 0
    for i in range(count):
        low, high = bounds[i], bounds[i + 1]
        mine, cycle, by = members[low:high], cycles[low:high], kinds[low:high]
        knot = part(graph, mine, local)
        found = 0
        apart = knots(knot, allowed | SPACED, active[low:high]) if anti else nowhere
        for search in range(0 if anti else 2, 3):
            # The second search begins as the first one does.
            if search != 1:
                source, entry = _beginnings(knot, allowed, apart if search == 0 else nowhere)
            if len(source) == 0:
                continue
            within = allowed & ~(1 << RW) if search == 0 else allowed | SPACED if search == 1 else allowed
            found, maybe = _shortest(knot, source, entry, within, patience, by, cycle)
            if search == 1 and maybe and len(mine) <= SMALL:
                found, maybe = _any_nonadjacent(knot, source, entry, allowed, patience, by, cycle)
            if search < 2 and maybe:
                missed[i] |= MISSED_SINGLE if search == 0 else MISSED_NONADJACENT
            if found:
                break
        length[i] = found
        name[i] = name_number(by[:found])
        least[i] = mine[cycle[0]]
        for at in range(found):
            cycle[at] = mine[cycle[at]]
            least[i] = min(least[i], cycle[at])
    return name, length, least, missed, kinds, cycles
