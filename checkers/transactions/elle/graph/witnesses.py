"""The cycle that names a strong component: a short one of the strongest name that the component has.

Every search begins with an edge that the cycle must have, and follows a shortest path back. What is exact:

  - Components without RW edges, and G2-item: any cycle has the name that is looked for, and one is always found.
  - G-single-item: a shortest path visits nothing twice, so that a closed walk with one RW edge is a cycle.
  - G-nonadjacent-item: a shortest closed walk may pass a transaction twice. Cut in two there, one half is a shorter
    walk of the same sort, or has no RW edge at all. So where no G0 or G1c is, the shortest walk of all is a cycle. Else
    all cycles of a component of up to SMALL transactions are tried, and in greater ones the search may be given up.

A search is given up when patience ends; then the next weaker name is looked for, and the result says which one may have
been missed. The last one, G2-item, is never given up before it has a cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int8, Int32, Int64
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
    part,
    strong_components,
)
from harness.compiled import compiled, inlined

MISSED_SINGLE = 1
MISSED_NONADJACENT = 2
"""Bits: which search was given up."""

SMALL = 24

DEPENDENCIES = 1 << WW | 1 << WR


class Patience(NamedTuple):
    """When a search in a component is given up. One path is always followed to its end."""

    beginnings: int = 2_000
    edges: int = 50_000_000
    steps: int = 300_000
    """Of trying all cycles of a small component."""


class _Processes(NamedTuple):
    """The transactions of each process, one process after the other."""

    listed: Int64
    """int64[transactions], ascending within each process."""
    follow: Int32
    """int32[transactions]: where in `listed` those of its process begin that began after it had ended;"""
    stop: Int32
    """and where they stop."""


@compiled
def _processes(graph: Graph) -> _Processes:
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
    return _Processes(listed, follow, stop)


@compiled
def _beginnings(graph: Graph, allowed: int, apart: Int32) -> tuple[Int32, Int32]:
    """Sources and entries of edges to begin with, those first that span least. With `apart` (components of states): RW
    edges inside one of them; else all RW edges if RW is allowed; else those that run against positions."""
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


class _Walk(NamedTuple):
    """A breadth-first search over states: transactions, and if SPACED, behind them, transactions that RW led to."""

    came: Int32
    """int32[states]: the state from which each was reached; -1 if it was not."""
    by: Int8
    """int8[states]: the kind of the edge from there."""
    queue: Int32
    """int32[states]: those that were reached, in that order."""
    swept: Int32
    """int32[transactions + 1]: of each place where a process stops in `_Processes.listed`, from where on all before it
    was reached."""
    passed: Int32
    """int32[transactions]: the last search whose path passes each of them, by its beginning."""


@compiled
def _shortest(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience, kinds: Int8, cycle: Int32
) -> tuple[int, bool]:
    """The shortest cycle that begins with one of the given edges and goes on with allowed ones: its length, 0 if none
    was found, and then whether there may be one. Its kinds and transactions are written to `kinds` and `cycle`.

        T0 ──RW──► T1 ──WR──► T2 ──WW──► T0       begin T0 ──RW──►, WR and WW allowed: T1; T2; T0 is reached after two
                   │                     ▲        edges: length 3. With REALTIME: T1; T2 and T3; T0 after two, by
                   └──REALTIME──► T3 ────┘        way of T2, which came first.
                                     WW
    """
    nodes = len(graph.start)
    states = 2 * nodes if allowed & SPACED else nodes
    processes = _processes(graph)
    walk = _Walk(
        np.full(states, -1, dtype=np.int32),
        np.empty(states, dtype=np.int8),
        np.empty(states, dtype=np.int32),
        np.arange(nodes + 1).astype(np.int32),
        np.full(nodes, -1, dtype=np.int32),
    )
    best, cost, maybe = 0, 0, False
    for i in range(len(source)):
        if best == 2:
            break
        if i and (i >= patience.beginnings or cost > patience.edges):
            maybe = True
            break
        kind, v = entry[i] & KIND_MASK, entry[i] >> KIND_BITS
        begin = v + nodes if allowed & SPACED and kind == RW else v
        longest = states if best == 0 else best - 2
        length, reached, looked_at = _walked(graph, processes, walk, allowed, begin, source[i], longest)
        cost += looked_at
        if walk.came[source[i]] >= 0:
            if _passes_twice(walk, source[i], length, i):
                maybe = True
            else:
                best = length + 1
                kinds[0] = kind
                _write_path(walk, source[i], length, kinds, cycle)
        _forget(processes, walk, reached)
    return best, maybe and best == 0


@inlined
def _walked(
    graph: Graph, processes: _Processes, walk: _Walk, allowed: int, begin: int, wanted: int, longest: int
) -> tuple[int, int, int]:
    """Until a state is reached, or no path of at most `longest` edges leads there: edges of the path, states that were
    reached, and how many edges were looked at."""
    walk.queue[0] = begin
    walk.came[begin] = begin
    head, tail, length, cost, gate = 0, 1, 0, 0, len(graph.start)
    while head < tail and walk.came[wanted] < 0 and length < longest:
        length += 1
        level = tail
        while head < level and walk.came[wanted] < 0:
            tail, gate, looked_at = _expanded(graph, processes, walk, allowed, walk.queue[head], tail, gate)
            cost += looked_at
            head += 1
    return length, tail, cost


@inlined
def _expanded(
    graph: Graph, processes: _Processes, walk: _Walk, allowed: int, state: int, tail: int, gate: int
) -> tuple[int, int, int]:
    """Reaches what follows a state; all transactions from `gate` on were reached in realtime order. The new tail of the
    queue, the new gate, and how many edges were looked at."""
    nodes = len(graph.start)
    x = state % nodes
    cost = graph.first[x + 1] - graph.first[x] + 1
    for j in range(graph.first[x], graph.first[x + 1]):
        kind, y = graph.entries[j] & KIND_MASK, graph.entries[j] >> KIND_BITS
        if kind == PROCESS or not allowed >> kind & 1:
            continue
        if kind == RW and allowed & SPACED:
            if state >= nodes:
                continue
            y += nodes
        tail = _reach(walk, state, kind, y, tail)
    # What is later in an order is all that is behind a place: each place is passed once.
    if allowed >> PROCESS & 1:
        stop = processes.stop[x]
        for j in range(processes.follow[x], walk.swept[stop]):
            tail = _reach(walk, state, PROCESS, processes.listed[j], tail)
        walk.swept[stop] = min(walk.swept[stop], processes.follow[x])
    if allowed >> REALTIME & 1:
        cost += max(0, gate - graph.after[x])
        for y in range(graph.after[x], gate):
            tail = _reach(walk, state, REALTIME, y, tail)
        gate = min(gate, graph.after[x])
    return tail, gate, cost


@inlined
def _reach(walk: _Walk, state: int, kind: int, follower: int, tail: int) -> int:
    if walk.came[follower] >= 0:
        return tail
    walk.came[follower], walk.by[follower], walk.queue[tail] = state, kind, follower
    return tail + 1


@inlined
def _passes_twice(walk: _Walk, state: int, length: int, search: int) -> bool:
    """Whether a path of so many edges to a state passes a transaction in both of its states."""
    nodes = len(walk.passed)
    twice = False
    for _ in range(length + 1):
        twice |= walk.passed[state % nodes] == search
        walk.passed[state % nodes] = search
        state = walk.came[state]
    return twice


@inlined
def _write_path(walk: _Walk, state: int, length: int, kinds: Int8, cycle: Int32) -> None:
    cycle[0] = state
    for at in range(length, 0, -1):
        kinds[at] = walk.by[state]
        state = walk.came[state]
        cycle[at] = state % len(walk.passed)


@inlined
def _forget(processes: _Processes, walk: _Walk, reached: int) -> None:
    for j in range(reached):
        state = walk.queue[j]
        stop = processes.stop[state % len(walk.passed)]
        walk.came[state] = -1
        walk.swept[stop] = stop


class _Between(NamedTuple):
    """The edges of a small graph."""

    other: Int8
    """int8[transactions, transactions]: the kind of the edge from row to column, if it is not RW; -1: none."""
    anti: Bool
    """bool[transactions, transactions]: whether there is an RW edge from row to column."""


class _Tried(NamedTuple):
    """A path that is being tried, by places."""

    kinds: Int8
    cycle: Int32
    step: Int32
    """int32[transactions]: from each place the next step to try: y: an edge to y that is not RW; transactions + y: RW
    to y."""
    on: Bool
    """bool[transactions]: whether the path passes each of them."""


@compiled
def _any_nonadjacent(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience, kinds: Int8, cycle: Int32
) -> tuple[int, bool]:
    """The same for a small graph and RW edges none of which follows another, by trying all cycles, short ones first.

    T0 ──RW──► T1 ──WR──► T2 ──RW──► T3 ──WW──► T0
               └────RW────────────────▲               begin T0 ──RW──►: T0 T1 T3 has two RW edges in a row, T0 T1 T2
                                                      does not come back to T0; T0 T1 T2 T3 is a cycle of length 4
    """
    nodes = len(graph.start)
    between = _Between(np.full((nodes, nodes), -1, dtype=np.int8), np.zeros((nodes, nodes), dtype=np.bool_))
    _fill(graph, allowed, between)
    tried = _Tried(kinds, cycle, np.empty(nodes, dtype=np.int32), np.zeros(nodes, dtype=np.bool_))
    steps = 0
    for length in range(3, nodes + 1):
        for i in range(len(source)):
            tried.on[:] = False
            cycle[0], cycle[1], kinds[0] = source[i], entry[i] >> KIND_BITS, RW
            closed, steps = _closed(between, tried, length, steps, patience.steps)
            if closed:
                return length, False
            if steps > patience.steps:
                return 0, True
    return 0, False


@inlined
def _fill(graph: Graph, allowed: int, between: _Between) -> None:
    nodes = len(graph.start)
    for x in range(nodes):
        for y in range(nodes):
            if graph.end[x] < graph.start[y]:
                if allowed >> PROCESS & 1 and graph.process[x] == graph.process[y]:
                    between.other[x, y] = PROCESS
                elif allowed >> REALTIME & 1:
                    between.other[x, y] = REALTIME
        for j in range(graph.first[x], graph.first[x + 1]):
            kind, y = graph.entries[j] & KIND_MASK, graph.entries[j] >> KIND_BITS
            if kind == RW:
                between.anti[x, y] = True
            elif kind != PROCESS:
                between.other[x, y] = kind


@inlined
def _closed(between: _Between, tried: _Tried, length: int, steps: int, most: int) -> tuple[bool, int]:
    """Whether a path of this length that begins as `tried` does can be closed, as it then is there; and the number of
    steps so far. Gives up when that is more than `most`."""
    nodes = len(tried.on)
    start = tried.cycle[0]
    tried.on[start] = tried.on[tried.cycle[1]] = True
    tried.step[1] = 0
    depth = 1
    while depth:
        x = tried.cycle[depth]
        if depth == length - 1:
            if between.other[x, start] >= 0:
                tried.kinds[depth] = between.other[x, start]
                return True, steps
            tried.step[depth] = 2 * nodes
        steps += 1
        if steps > most:
            return False, steps
        step = _possible_step(between, tried, depth)
        if step == 2 * nodes:
            tried.on[x] = False
            depth -= 1
            continue
        y = step % nodes
        tried.kinds[depth] = RW if step >= nodes else between.other[x, y]
        tried.step[depth] = step + 1
        depth += 1
        tried.cycle[depth], tried.on[y], tried.step[depth] = y, True, 0
    return False, steps


@inlined
def _possible_step(between: _Between, tried: _Tried, depth: int) -> int:
    """The first one from the last place on; twice the number of transactions if none is left."""
    nodes = len(tried.on)
    x = tried.cycle[depth]
    step: int = tried.step[depth]
    while step < 2 * nodes:
        y = step % nodes
        follows_rw = tried.kinds[depth - 1] == RW
        if not tried.on[y] and (between.anti[x, y] and not follows_rw if step >= nodes else between.other[x, y] >= 0):
            break
        step += 1
    return step


@compiled
def named(
    graph: Graph, members: Int32, bounds: Int64, allowed: int, patience: Patience
) -> tuple[Int8, Int32, Int32, Int8, Int8, Int32]:
    """Strong components over the edges of the allowed kinds are members[bounds[i]:bounds[i + 1]], each ascending; if RW
    is allowed, they have such an edge. Of each: its name's number, the length of its witness, the first transaction of
    that, and which searches were given up; and then kinds and transactions of all witnesses, where those of each
    component begin at bounds[i]."""
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
            # The second search begins as the first one does.
            if search != 1:
                source, entry = _beginnings(inside, allowed, apart if search == 0 else nowhere)
            if len(source) == 0:
                continue
            within = allowed & ~(1 << RW) if search == 0 else allowed | SPACED if search == 1 else allowed
            found, maybe = _shortest(inside, source, entry, within, patience, by, cycle)
            if search == 1 and maybe and len(mine) <= SMALL:
                found, maybe = _any_nonadjacent(inside, source, entry, allowed, patience, by, cycle)
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
