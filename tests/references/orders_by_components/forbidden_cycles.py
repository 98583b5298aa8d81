"""The cheap cycles that alternatives make, taken together: what must not all be taken.

From each event that a taken edge leads to, the way back with the fewest choices is looked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int8, Int32, Int64
from checkers.transactions.orders.strong_components import strong_components
from harness.compiled import compiled, inlined
from tests.references.orders_by_components.clauses import Clause
from tests.references.orders_by_components.subproblem import Component, Forbidden, Refutation

CYCLES = 4_000
"""So many cycles are taken from a proposal."""

NEAR = 1_024
"""Cycles are looked for first among events that are so near to each other, by when their transactions began; where all
sessions are busy most of what follows an event is too far away to lead back to it."""

KNOWN = -1
"""Label of an edge that no choice has brought; others have 2 * choice + alternative."""


class AlternativeGraph(NamedTuple):
    """All edges that there may be, sorted by their sources."""

    first: Int64
    """int64[events + 1]: edges from event e are first[e]:first[e + 1]."""
    source: Int32
    target: Int32
    anti: Int8
    """int8[edges]: 1 if the edge is an anti-dependency that counts, else 0."""
    label: Int32
    """int32[edges]: the alternative that brings the edge, or KNOWN."""
    first_in: Int64
    edges_in: Int32
    """Edges into e are edges_in[first_in[e]:first_in[e + 1]]."""
    layers: int
    """An edge with `anti` leads to the next layer, and there are so many. 1: no edge has `anti`."""

    @classmethod
    def of(cls, component: Component) -> AlternativeGraph:
        sizes = np.diff(component.first)
        alternatives = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        counted = component.forbidden is Forbidden.AT_MOST_ONE_ANTI_DEPENDENCY
        behind = np.ones(len(alternatives), dtype=np.int8)
        behind[component.first[:-1][sizes > 0]] = 0
        rows = np.concatenate((component.edges, component.anti_dependencies, component.alternatives))
        known = len(component.edges), len(component.anti_dependencies)
        anti = np.concatenate((np.zeros(known[0], np.int8), np.ones(known[1], np.int8), behind)) * np.int8(counted)
        label = np.concatenate((np.full(sum(known), KNOWN, dtype=np.int32), alternatives))
        order = np.lexsort((label, anti, rows[:, 1], rows[:, 0]))
        source, target = (np.ascontiguousarray(column[order], dtype=np.int32) for column in rows.T)
        events = np.arange(len(component.events) + 1)
        edges_in = np.argsort(target, kind="stable").astype(np.int32)
        return cls(
            first=np.searchsorted(source, events),
            target=target,
            anti=anti[order],
            label=label[order],
            first_in=np.searchsorted(target[edges_in], events),
            edges_in=edges_in,
            source=source,
            layers=2 if counted else 1,
        )

    def cycles(self, taken: Int8) -> list[Clause]:
        """Forbidden ones among what is known and taken, each with as few choices as possible."""
        size = len(self.first) - 1
        ends, edges = _forbidden_cycles(self, taken, min(NEAR, size))
        near = NEAR
        while not len(ends) and near < size:
            near *= 2
            ends, edges = _forbidden_cycles(self, taken, near)
        found: dict[tuple[int, ...], Clause] = {}
        for cycle in np.split(edges, ends)[:-1]:
            labels = tuple(sorted({int(label) for label in self.label[cycle] if label != KNOWN}))
            assert labels, "what is known makes a cycle"
            refutation = Refutation(cycle=tuple(self.source[cycle].tolist()))
            found.setdefault(labels, Clause(labels=labels, refutation=refutation, cycles=1))
        return list(found.values())


class _Search(NamedTuple):
    """For the cheapest way back to an event, over states: events, and if anti-dependencies count, behind them the
    events that one of these led to."""

    cost: Int32
    """int32[states]: edges with labels on the way there."""
    came_by: Int32
    came_from: Int32
    """int32[states]: edge and state."""
    done: Bool
    closing: Int32
    """int32[states]: the edge that leads back to the start, or -1."""
    reached: Int32
    """int32[2, layers * edges + 1]: stacks of the states that cost what is being looked at, and one more; by parity."""


@compiled
def _forbidden_cycles(graph: AlternativeGraph, taken: Int8, near: int) -> tuple[Int64, Int32]:
    """(ends of cycles, edges of all of them): from each event that a taken edge leads to, the cheapest way back through
    events that are near to it.

    known:  a ──► b,  c ──► d         choices 0 and 1, whose taken alternatives bring b ──► c and d ──► a

    to a leads d ──► a: the cheapest way back is a b c d, which has two labels: one cycle, and both are covered;
    to c leads b ──► c, which is covered: no other cycle is looked for
    """
    size, edges_of_graph = len(graph.first) - 1, len(graph.target)
    usable = _usable(graph, taken)
    states = size * graph.layers
    search = _Search(
        np.empty(states, dtype=np.int32),
        np.empty(states, dtype=np.int32),
        np.empty(states, dtype=np.int32),
        np.empty(states, dtype=np.bool_),
        np.full(states, -1, dtype=np.int32),
        np.empty((2, graph.layers * edges_of_graph + 1), dtype=np.int32),
    )
    covered = np.zeros(2 * len(taken), dtype=np.bool_)
    ends = np.empty(CYCLES, dtype=np.int64)
    edges = np.empty(0, dtype=np.int32)
    found = 0
    for start in range(size):
        if not _mark_closing(graph, usable, covered, search, start):
            continue
        for layer in range(graph.layers):
            low, high = layer * size + max(start - near, 0), layer * size + min(start + near + 1, size)
            search.cost[low:high] = edges_of_graph
            search.done[low:high] = False
        last = _cheapest(graph, usable, search, start, near)
        if last >= 0:
            cycle = _traced(search, last)
            for edge in cycle:
                if graph.label[edge] >= 0:
                    covered[graph.label[edge]] = True
            edges = np.concatenate((edges, cycle))
            ends[found] = len(edges)
            found += 1
        _unmark_closing(graph, search, start)
        if found == CYCLES:
            break
    return ends[:found].copy(), edges


@compiled
def _usable(graph: AlternativeGraph, taken: Int8) -> Bool:
    """bool[edges]: known and taken ones, between events that lead to each other."""
    size = len(graph.first) - 1
    there = np.empty(len(graph.target), dtype=np.bool_)
    first = np.zeros(size + 1, dtype=np.int64)
    targets = np.empty(len(graph.target), dtype=np.int32)
    count = 0
    for event in range(size):
        for e in range(graph.first[event], graph.first[event + 1]):
            label = graph.label[e]
            there[e] = label < 0 or taken[label >> 1] == label & 1
            if there[e]:
                targets[count] = graph.target[e]
                count += 1
        first[event + 1] = count
    component = strong_components(first, targets[:count])
    for e in range(len(graph.target)):
        there[e] &= component[graph.source[e]] == component[graph.target[e]]
    return there


@inlined
def _mark_closing(graph: AlternativeGraph, usable: Bool, covered: Bool, search: _Search, start: int) -> bool:
    """Notes the edges that close a cycle at `start` and are in no cycle so far. Whether there are some."""
    size = len(graph.first) - 1
    wanted = False
    for i in range(graph.first_in[start], graph.first_in[start + 1]):
        e = graph.edges_in[i]
        if usable[e] and graph.label[e] >= 0 and not covered[graph.label[e]]:
            wanted = True
            for layer in range(graph.layers - graph.anti[e]):
                search.closing[layer * size + graph.source[e]] = e
    return wanted


@inlined
def _unmark_closing(graph: AlternativeGraph, search: _Search, start: int) -> None:
    size = len(graph.first) - 1
    for i in range(graph.first_in[start], graph.first_in[start + 1]):
        for layer in range(graph.layers):
            search.closing[layer * size + graph.source[graph.edges_in[i]]] = -1


@inlined
def _cheapest(graph: AlternativeGraph, usable: Bool, search: _Search, start: int, near: int) -> int:
    """The state from which an edge closes the cheapest cycle at `start`; -1 if there is none."""
    search.cost[start], search.came_by[start], search.reached[0, 0] = 0, -1, start
    price, count, dearer = 0, 1, 0
    while count > 0:
        while count > 0:
            count -= 1
            state: int = search.reached[price & 1, count]
            if search.done[state]:
                continue
            search.done[state] = True
            if search.closing[state] >= 0:
                return state
            count, dearer = _expanded(graph, usable, search, state, price, count, dearer, start, near)
        price, count, dearer = price + 1, dearer, 0
    return -1


@inlined
def _expanded(
    graph: AlternativeGraph,
    usable: Bool,
    search: _Search,
    state: int,
    price: int,
    count: int,
    dearer: int,
    start: int,
    near: int,
) -> tuple[int, int]:
    """Reaches what follows a state. How many states are reached that cost as much, and how many that cost one more."""
    size = len(graph.first) - 1
    layer, event = state // size, state % size
    for e in range(graph.first[event], graph.first[event + 1]):
        follower = (layer + graph.anti[e]) * size + graph.target[e]
        costs_more = graph.label[e] >= 0
        if not usable[e] or abs(graph.target[e] - start) > near:
            continue
        if follower >= len(search.cost) or price + costs_more >= search.cost[follower]:
            continue
        search.cost[follower] = price + costs_more
        search.came_by[follower], search.came_from[follower] = e, state
        if costs_more:
            search.reached[(price + 1) & 1, dearer] = follower
            dearer += 1
        else:
            search.reached[price & 1, count] = follower
            count += 1
    return count, dearer


@compiled
def _traced(search: _Search, last: int) -> Int32:
    """The edges of the cycle that is closed from the state `last`."""
    length, state = 1, last
    while search.came_by[state] >= 0:
        length += 1
        state = search.came_from[state]
    cycle = np.empty(length, dtype=np.int32)
    cycle[length - 1] = search.closing[last]
    state = last
    for place in range(length - 2, -1, -1):
        cycle[place] = search.came_by[state]
        state = search.came_from[state]
    return cycle
