"""The shortest cycle through one of some given edges: a breadth-first search from each, until patience ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int8, Int32, Int64
from checkers.kernels.sorting import ascending
from checkers.transactions.elle.graph.strong_components import (
    INDEFINITELY,
    KIND_BITS,
    KIND_MASK,
    PROCESS,
    REALTIME,
    RW,
    SPACED,
    Graph,
)
from harness.compiled import compiled, inlined


class Patience(NamedTuple):
    """When a search in a component is given up. One path at least is followed to its end."""

    beginnings: int = 2_000
    edges: int = 50_000_000
    steps: int = 300_000
    """The most steps of trying all cycles of a small component."""


class _Processes(NamedTuple):
    """The transactions of each process, one process after the other."""

    listed: Int64
    """int64[transactions]: transactions, one process after the other, ascending within each."""
    follow: Int32
    """int32[transactions]: the place in `listed` of the first one of its process that began after it had ended."""
    stop: Int32
    """int32[transactions]: the place in `listed` behind the last one of its process."""


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


class _Walk(NamedTuple):
    """A breadth-first search over states: one for each transaction and, if SPACED, another one for each transaction as
    reached by RW, numbered behind them."""

    came: Int32
    """int32[states]: the state from which each was reached; -1 if it was not."""
    by: Int8
    """int8[states]: the kind of the edge from that state."""
    queue: Int32
    """int32[states]: the states in the order in which they were reached."""
    swept: Int32
    """int32[transactions + 1]: for each place in `_Processes.listed` where a process stops, the place from which on all
    transactions before the stop were reached."""
    passed: Int32
    """int32[transactions]: the last search, named by its beginning, whose path passes each transaction."""


@compiled
def shortest(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience, kinds: Int8, cycle: Int32
) -> tuple[int, bool]:
    """The shortest cycle that begins with one of the given edges and goes on with allowed ones: (its length, or 0 if
    none was found; whether there may be one all the same). Its kinds and transactions are written to `kinds` and
    `cycle`.

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
    """Searches until a state is reached, or no path of at most `longest` edges leads there: (edges of the path, how
    many states were reached, how many edges were looked at)."""
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
    """Reaches what follows a state; all transactions from `gate` on were reached in realtime order before. Returns (the
    new tail of the queue, the new gate, how many edges were looked at)."""
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
    # What follows in an order is all that is behind a place. So each place is passed only once.
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
