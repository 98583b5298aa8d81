"""Graphs of transactions as arrays, and their strong components: those of more than one transaction.

Realtime order is not stored: transactions are numbered by their beginning, so those that began after T had ended are
all from `after[T]` on. To find components it is represented by a chain of gates, one in front of each transaction: T
leads to the gate after[T], and each gate to its transaction and to the next gate. That is 3 n edges for an order of up
to n² / 2, or of n times the number of clients if it is reduced. Components are found by Pearce's variant of Tarjan's
algorithm (Pearce, "A space-efficient algorithm for finding strongly connected components", Information Processing
Letters 116, 2016), without recursion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int8, Int32
from checkers.transactions.elle.edges import Dependency
from harness.compiled import compiled, inlined

INDEFINITELY = int(np.iinfo(np.int32).max)
"""The `end` of indefinite transactions."""

KIND_BITS = 2
"""An entry of a graph is the target, shifted by this number of bits, and the kind of the edge, which is never
REALTIME."""
KIND_MASK = (1 << KIND_BITS) - 1
MOST_NODES = 1 << (31 - KIND_BITS)

WW, WR, RW, PROCESS, REALTIME = (int(kind) for kind in Dependency)
ORDERS = (0, 1 << PROCESS, 1 << PROCESS | 1 << REALTIME)
"""The orders that each of the VARIANTS allows besides dependencies, as bits."""

SPACED = 1 << len(Dependency)
"""A bit beside those of allowed kinds: no RW edge may follow another. Then a transaction has two states: its own
number, reached by an edge other than RW, and that plus the number of transactions, reached by RW."""


class Graph(NamedTuple):
    """A graph of transactions, which are numbered by their beginning."""

    first: Int32
    """int32[transactions + 1]: edges from u are entries[first[u]:first[u + 1]]."""
    entries: Int32
    """The edges, ascending from each u. Of several dependencies with the same ends the one of the lowest kind is
    kept."""
    start: Int32
    end: Int32
    process: Int32
    after: Int32
    """The first transaction that began after this one had ended; their number if there is none."""


def graph_of(start: Int32, end: Int32, process: Int32, source: Int32, target: Int32, kind: Int8) -> Graph:
    """The graph of these edges, and of edges from each transaction to the next one of its process. `start` ascends, and
    processes are dense."""
    before = _process_predecessors(start, end, process, int(process.max(initial=0)) + 1)
    first, entries = _adjacent(source, target, kind, before)
    after = np.searchsorted(start, end, side="right").astype(np.int32)
    return Graph(first, entries, start, end, process, after)


@compiled
def _process_predecessors(start: Int32, end: Int32, process: Int32, processes: int) -> Int32:
    """The last transaction of the same process that had ended before each of them began; -1 if there is none."""
    last = np.full(processes, -1, dtype=np.int32)
    before = np.full(len(start), -1, dtype=np.int32)
    for u in range(len(start)):
        t = last[process[u]]
        if t >= 0 and end[t] < start[u]:
            before[u] = t
        if end[u] != INDEFINITELY:
            last[process[u]] = u
    return before


@compiled
def _adjacent(source: Int32, target: Int32, kind: Int8, before: Int32) -> tuple[Int32, Int32]:
    nodes = len(before)
    into = np.zeros(nodes + 1, dtype=np.int32)
    first = np.zeros(nodes + 1, dtype=np.int32)
    for i in range(len(source)):
        into[target[i] + 1] += 1
        first[source[i] + 1] += 1
    for t in before:
        if t >= 0:
            first[t + 1] += 1
    for u in range(nodes):
        into[u + 1] += into[u]
        first[u + 1] += first[u]
    sources = np.empty(len(source), dtype=np.int32)
    free = into.copy()
    for i in range(len(source)):
        sources[free[target[i]]] = source[i] << KIND_BITS | kind[i]
        free[target[i]] += 1
    # They are filled in the order of targets, so that those of each source ascend.
    entries = np.empty(first[nodes], dtype=np.int32)
    free = first.copy()
    for v in range(nodes):
        for i in range(into[v], into[v + 1]):
            u = sources[i] >> KIND_BITS
            entry = v << KIND_BITS | (sources[i] & KIND_MASK)
            if free[u] > first[u] and entries[free[u] - 1] >> KIND_BITS == v:
                if entry < entries[free[u] - 1]:
                    entries[free[u] - 1] = entry
            else:
                entries[free[u]] = entry
                free[u] += 1
        t = before[v]
        if t >= 0:
            entries[free[t]] = v << KIND_BITS | PROCESS
            free[t] += 1
    kept = 0
    for u in range(nodes):
        low = first[u]
        first[u] = kept
        for i in range(low, free[u]):
            entries[kept] = entries[i]
            kept += 1
    first[nodes] = kept
    return first, entries[:kept].copy()


@compiled
def part(graph: Graph, members: Int32, local: Int32) -> Graph:
    """The graph of some transactions, which ascend, and the edges between them. `local`: room for a number for each
    transaction of the whole graph, all -1 before and after."""
    begins, all_entries, all_after = graph.first, graph.entries, graph.after
    nodes = len(members)
    for i in range(nodes):
        local[members[i]] = i
    first = np.zeros(nodes + 1, dtype=np.int32)
    for i in range(nodes):
        first[i + 1] = first[i]
        for j in range(begins[members[i]], begins[members[i] + 1]):
            if local[all_entries[j] >> KIND_BITS] >= 0:
                first[i + 1] += 1
    entries = np.empty(first[nodes], dtype=np.int32)
    start = np.empty(nodes, dtype=np.int32)
    end = np.empty(nodes, dtype=np.int32)
    process = np.empty(nodes, dtype=np.int32)
    after = np.empty(nodes, dtype=np.int32)
    at = 0
    for i in range(nodes):
        u = members[i]
        for j in range(begins[u], begins[u + 1]):
            v = local[all_entries[j] >> KIND_BITS]
            if v >= 0:
                entries[at] = v << KIND_BITS | (all_entries[j] & KIND_MASK)
                at += 1
        start[i], end[i], process[i] = graph.start[u], graph.end[u], graph.process[u]
        low, high = i, nodes
        while low < high:
            middle = (low + high) >> 1
            if members[middle] < all_after[u]:
                low = middle + 1
            else:
                high = middle
        after[i] = low
    for i in range(nodes):
        local[members[i]] = -1
    return Graph(first, entries, start, end, process, after)


@compiled
def strong_components(graph: Graph, allowed: int, active: Bool) -> Int32:
    """The strong component of each transaction, by edges of the kinds in `allowed` (bits) between active transactions;
    -1 if it is in none. They are numbered by their first states. The result is int32[transactions], or, by state,
    int32[2 * transactions] if SPACED. With four transactions, the second and the third of one process:

        T0 ──WW──► T1 ──PROCESS──► T2 ──WR──► T3        WW, WR and RW allowed:  [-1 -1 -1 -1]
        ▲                          │                    PROCESS, too:           [ 0  0  0 -1]
        └────────────RW────────────┘                    and if no RW edge follows another, of states:
                                                        [-1  0  0 -1 | 0 -1 -1 -1]
    """
    states = 2 * len(active) if allowed & SPACED else len(active)
    return _renumbered(_numbered(graph, allowed, active, states), states)


@compiled
def _numbered(graph: Graph, allowed: int, active: Bool, states: int) -> Int32:
    """The number of each place's component; 0 if it is not reached. Places are the states, and behind them the
    gates."""
    nodes = len(active)
    places = states + nodes * (allowed >> REALTIME & 1)
    number = np.zeros(places, dtype=np.int32)  # From places - 1 down: components that are complete.
    # The stack of calls grows from the left, that of places waiting for their component from the right. No place is in
    # both.
    stack = np.empty(places + 1, dtype=np.int32)
    cursor = np.empty(places + 1, dtype=np.int32)
    is_root = np.empty(places + 1, dtype=np.bool_)
    waiting, index, component = places + 1, 1, places
    for begin in range(states):
        if number[begin] or not active[begin % nodes]:
            continue
        stack[0], cursor[0], is_root[0], number[begin] = begin, 0, True, index
        index += 1
        depth = 1
        while depth:
            v = stack[depth - 1]
            w, at = _next_place(graph, allowed, active, states, v, cursor[depth - 1])
            if w >= 0 and number[w] == 0:
                cursor[depth - 1] = at
                stack[depth], cursor[depth], is_root[depth], number[w] = w, 0, True, index
                index += 1
                depth += 1
                continue
            if w >= 0:
                if number[w] < number[v]:
                    number[v] = number[w]
                    is_root[depth - 1] = False
                cursor[depth - 1] = at + 1
                continue
            depth -= 1
            if not is_root[depth]:
                waiting -= 1
                stack[waiting] = v
                continue
            index -= 1
            while waiting <= places and number[v] <= number[stack[waiting]]:
                number[stack[waiting]] = component
                waiting += 1
                index -= 1
            number[v] = component
            component -= 1
    return number


@inlined
def _next_place(graph: Graph, allowed: int, active: Bool, states: int, place: int, at: int) -> tuple[int, int]:
    """(where the next allowed edge of a place leads, from its edge `at` on, or -1 if none is left; which edge that is).
    The edge of a state to its gate comes last; a gate has one to its transaction, and one to the next gate."""
    nodes = len(active)
    if place >= states:
        x = place - states
        if at == 0 and active[x]:
            return x, 0
        return (place + 1, 1) if at <= 1 and x + 1 < nodes else (-1, 2)
    x = place % nodes
    low = graph.first[x]
    degree = graph.first[x + 1] - low
    while at < degree:
        entry = graph.entries[low + at]
        kind, y = entry & KIND_MASK, entry >> KIND_BITS
        if allowed >> kind & 1 and active[y]:
            if kind != RW or not allowed & SPACED:
                return y, at
            if place < nodes:
                return nodes + y, at
        at += 1
    if at == degree and allowed >> REALTIME & 1 and graph.after[x] < nodes:
        return states + graph.after[x], at
    return -1, at


@compiled
def _renumbered(number: Int32, states: int) -> Int32:
    """The components of more than one state, numbered from 0 by their first states; -1 for all other states."""
    size = np.zeros(len(number) + 1, dtype=np.int32)
    for v in range(states):
        size[number[v]] += number[v] != 0
    renumbered = np.full(len(number) + 1, -1, dtype=np.int32)
    count = 0
    component = np.full(states, -1, dtype=np.int32)
    for v in range(states):
        c = number[v]
        if c and size[c] > 1:
            if renumbered[c] < 0:
                renumbered[c] = count
                count += 1
            component[v] = renumbered[c]
    return component
