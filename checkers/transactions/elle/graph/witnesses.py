"""The cycle that names a strong component: a short one of the strongest name that the component has.

Every search begins with an edge that the cycle must have, and follows a shortest path back. How exact it is:

  - Components without RW edges, and G2-item: any cycle has the name that is looked for, and one is always found.
  - G-single-item: a shortest path visits nothing twice, so a closed walk with one RW edge is a cycle.
  - G-nonadjacent-item: a shortest closed walk may pass a transaction twice. Cut in two there, one half is a shorter
    walk of the same kind, or has no RW edge at all. So if there is no G0 or G1c, the shortest walk of all is a cycle.
    Otherwise all cycles of a component of up to SMALL transactions are tried; in larger ones the search may be given
    up.

A search is given up when patience ends. Then the next weaker name is looked for, and the result says which name may
have been missed. The search for the last one, G2-item, is never given up before it has found a cycle.
"""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int8, Int32, Int64
from checkers.kernels.sorting import ascending
from checkers.transactions.elle.graph.cycles import name_number
from checkers.transactions.elle.graph.shortest_cycles import Patience, shortest
from checkers.transactions.elle.graph.small_cycles import any_nonadjacent
from checkers.transactions.elle.graph.strong_components import (
    INDEFINITELY,
    KIND_BITS,
    KIND_MASK,
    PROCESS,
    RW,
    SPACED,
    WR,
    WW,
    Graph,
    part,
    strong_components,
)
from harness.compiled import compiled

MISSED_SINGLE = 1
MISSED_NONADJACENT = 2
"""The bits that say which search was given up."""

SMALL = 24

DEPENDENCIES = 1 << WW | 1 << WR


@compiled
def _beginnings(graph: Graph, allowed: int, apart: Int32) -> tuple[Int32, Int32]:
    """The sources and entries of edges to begin with, sorted by how much they span, the least first. With `apart`
    (components of states) they are the RW edges inside one of these; otherwise all RW edges if RW is allowed; otherwise
    the edges that run against positions."""
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
def named(
    graph: Graph, members: Int32, bounds: Int64, allowed: int, patience: Patience
) -> tuple[Int8, Int32, Int32, Int8, Int8, Int32]:
    """For each strong component: the number of its name, the length of its witness, the witness's first transaction,
    and which searches were given up. Then the kinds and the transactions of all witnesses; those of component i begin
    at bounds[i]. The components over edges of the allowed kinds are members[bounds[i]:bounds[i + 1]], each ascending;
    if RW is allowed, each has such an edge."""
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
        inside = part(graph, mine, local)
        found = 0
        apart = strong_components(inside, allowed | SPACED, active[low:high]) if anti else nowhere
        for search in range(0 if anti else 2, 3):
            # The second search begins with the same edges as the first one.
            if search != 1:
                source, entry = _beginnings(inside, allowed, apart if search == 0 else nowhere)
            if len(source) == 0:
                continue
            within = allowed & ~(1 << RW) if search == 0 else allowed | SPACED if search == 1 else allowed
            found, maybe = shortest(inside, source, entry, within, patience, by, cycle)
            if search == 1 and maybe and len(mine) <= SMALL:
                found, maybe = any_nonadjacent(inside, source, entry, allowed, patience, by, cycle)
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
