"""Makes all choices of a component at once, or shows that nothing will do.

A SAT solver proposes an alternative for each choice, cheap cycles among the edges that it brings become clauses which
forbid them, and again, until there is no cycle or no proposal. What forces nothing is never put into a clause, and the
first proposal follows the numbers of transactions, which is near the truth in histories of real systems.

Clauses that contradict each other are made into a refutation by a small solver of its own, which keeps a reason for
all that it learns: a reason for a clause refutes the alternatives in it, taken together, and nothing else.

The same component gets the same answer everywhere: bounds count conflicts, cycles and cases, and never time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pysat.solvers import Glucose4

from checkers.kernels.columns import Bool, Int8, Int32, Int64
from checkers.transactions.isolation.constraints.component import Component, Forbidden, Refutation, Solution
from checkers.verdict import Verdict
from harness.compiled import compiled, inlined

ROUNDS = 500
"""So often the solver proposes."""
CYCLES = 1_000
"""So many cycles are taken from a proposal."""
CONFLICTS = 200_000
"""The solver gives up at so many, in a round."""
CASES = 1_000
"""A refutation has at most so many cycles, and the search for it at most so many conflicts."""

LOOKS = 20_000_000
"""At so many looks at clauses, the search for a refutation is given up."""
LEAVING_OUT = 300
"""So many clauses are tried to do without."""

KNOWN = -1
"""Label of an edge that no choice has brought; others have 2 * choice + alternative."""


def solved(component: Component) -> Solution:
    """An alternative for each choice, or a refutation; UNKNOWN where a bound was reached."""
    graph = _Graph.of(component)
    taken = np.where(component.writers[:, 0] < component.writers[:, 1], 0, 1).astype(np.int8)
    clauses: list[_Clause] = []
    with Glucose4() as solver:
        solver.set_phases([_literal(2 * i + int(taken[i])) for i in range(len(component))])
        for _ in range(ROUNDS):
            solver.conf_budget(CONFLICTS)
            proposed = solver.solve_limited(expect_interrupt=True)  # otherwise it takes Ctrl-C for a failure of its own
            if proposed is None:
                break
            if not proposed:
                return Solution(verdict=Verdict.INVALID, taken=taken, refutation=_refuted(clauses))
            for literal in solver.get_model():
                taken[abs(literal) - 1] = literal > 0
            found = graph.cycles(taken)
            if not found:
                return Solution(verdict=Verdict.VALID, taken=taken)
            for clause in found:
                solver.add_clause([-_literal(label) for label in clause.labels])
            clauses += found
    return Solution(verdict=Verdict.UNKNOWN, taken=taken)


def _literal(label: int) -> int:
    return label // 2 + 1 if label & 1 else -(label // 2 + 1)


@dataclass(frozen=True, kw_only=True)
class _Clause:
    """Alternatives that cannot all be taken, ascending, and why."""

    labels: tuple[int, ...]
    refutation: Refutation
    cycles: int
    """In the refutation."""


class _Graph(NamedTuple):
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
    def of(cls, component: Component) -> _Graph:
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

    def cycles(self, taken: Int8) -> list[_Clause]:
        """Forbidden ones among what is known and taken, each with as few choices as possible."""
        ends, edges = _forbidden_cycles(self, taken)
        found: dict[tuple[int, ...], _Clause] = {}
        for cycle in np.split(edges, ends)[:-1]:
            labels = tuple(sorted({int(label) for label in self.label[cycle] if label != KNOWN}))
            assert labels, "what is known makes a cycle"
            refutation = Refutation(cycle=tuple(self.source[cycle].tolist()))
            found.setdefault(labels, _Clause(labels=labels, refutation=refutation, cycles=1))
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
def _forbidden_cycles(graph: _Graph, taken: Int8) -> tuple[Int64, Int32]:
    """(ends of cycles, edges of all of them): from each event that a taken edge leads to, the cheapest way back.

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
        search.cost[:] = edges_of_graph
        search.done[:] = False
        last = _cheapest(graph, usable, search, start)
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
def _usable(graph: _Graph, taken: Int8) -> Bool:
    """bool[edges]: known and taken ones; and where all cycles are forbidden, only if they can be on one."""
    there = np.empty(len(graph.target), dtype=np.bool_)
    for e in range(len(graph.target)):
        label = graph.label[e]
        there[e] = label < 0 or taken[label >> 1] == label & 1
    if graph.layers == 1:
        alive = _on_cycles(graph, there)
        for e in range(len(graph.target)):
            there[e] &= alive[graph.source[e]] and alive[graph.target[e]]
    return there


@inlined
def _mark_closing(graph: _Graph, usable: Bool, covered: Bool, search: _Search, start: int) -> bool:
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
def _unmark_closing(graph: _Graph, search: _Search, start: int) -> None:
    size = len(graph.first) - 1
    for i in range(graph.first_in[start], graph.first_in[start + 1]):
        for layer in range(graph.layers):
            search.closing[layer * size + graph.source[graph.edges_in[i]]] = -1


@inlined
def _cheapest(graph: _Graph, usable: Bool, search: _Search, start: int) -> int:
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
            count, dearer = _expanded(graph, usable, search, state, price, count, dearer)
        price, count, dearer = price + 1, dearer, 0
    return -1


@inlined
def _expanded(
    graph: _Graph, usable: Bool, search: _Search, state: int, price: int, count: int, dearer: int
) -> tuple[int, int]:
    """Reaches what follows a state. How many states are reached that cost as much, and how many that cost one more."""
    size = len(graph.first) - 1
    layer, event = state // size, state % size
    for e in range(graph.first[event], graph.first[event + 1]):
        follower = (layer + graph.anti[e]) * size + graph.target[e]
        costs_more = graph.label[e] >= 0
        if not usable[e] or follower >= len(search.cost) or price + costs_more >= search.cost[follower]:
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


@compiled
def _on_cycles(graph: _Graph, there: Bool) -> Bool:
    """Events that are on cycles, or between them."""
    first, source, target = graph.first, graph.source, graph.target
    first_in, edges_in = graph.first_in, graph.edges_in
    size = len(first) - 1
    alive = np.ones(size, dtype=np.bool_)
    ready = np.empty(size, dtype=np.int32)
    for backwards in (False, True):
        waiting = np.zeros(size, dtype=np.int32)
        for e in range(len(target)):
            if there[e] and alive[source[e]] and alive[target[e]]:
                waiting[source[e] if backwards else target[e]] += 1
        count = 0
        for event in range(size):
            if alive[event] and waiting[event] == 0:
                ready[count] = event
                count += 1
        while count > 0:
            count -= 1
            event = ready[count]
            alive[event] = False
            low, high = (first_in[event], first_in[event + 1]) if backwards else (first[event], first[event + 1])
            for i in range(low, high):
                e = edges_in[i] if backwards else i
                other = source[e] if backwards else target[e]
                if there[e] and alive[other]:
                    waiting[other] -= 1
                    if waiting[other] == 0:
                        ready[count] = other
                        count += 1
    return alive


def _refuted(clauses: Sequence[_Clause]) -> Refutation | None:
    """A refutation out of clauses that cannot all be kept."""
    search = _Learning(_core(clauses))
    for _ in range(CASES):
        learned = search.learned()
        if learned is None or not learned.labels:
            return learned.refutation if learned and learned.cycles <= CASES else None
    return None


def _core(clauses: Sequence[_Clause]) -> list[_Clause]:
    """A part of them that cannot all be kept: what the solver needed when it was asked, and asked again without one
    after the other."""
    needed = list(clauses)
    variables = max(label // 2 + 1 for clause in needed for label in clause.labels)
    with Glucose4() as solver:
        for number, clause in enumerate(needed, start=variables + 1):
            solver.add_clause([-number, *(-_literal(label) for label in clause.labels)])
        numbers = list(range(variables + 1, variables + 1 + len(needed)))
        assert not solver.solve_limited(assumptions=numbers, expect_interrupt=True)
        numbers = sorted(solver.get_core() or ())
        left = 0
        for _ in range(LEAVING_OUT):
            if left == len(numbers):
                break
            solver.conf_budget(CONFLICTS)
            fewer = numbers[:left] + numbers[left + 1 :]
            if solver.solve_limited(assumptions=fewer, expect_interrupt=True) is False:
                numbers = sorted(solver.get_core() or ())
            else:
                left += 1
    return [needed[number - variables - 1] for number in numbers]


class _Learning:
    """Takes alternatives until a clause forbids that, and learns from it a clause that had not been there."""

    def __init__(self, clauses: Iterable[_Clause]) -> None:
        self._clauses: list[_Clause] = []
        self._free: list[int] = []
        """Of each clause, how many of its labels are not taken."""
        self._having: dict[int, list[int]] = defaultdict(list)
        """label -> clauses."""
        self._trail: list[tuple[int, _Clause | None]] = []
        """(label taken, clause that left nothing else or None)."""
        self._taken: set[int] = set()
        self._looks = 0
        for clause in clauses:
            self._add(clause)

    def learned(self) -> _Clause | None:
        """One without labels is forbidden in any case; None: that took too long."""
        conflict = self._conflict()
        if conflict is None:
            return None
        while self._trail:
            label, reason = self._taken_back()
            if label not in conflict.labels:
                continue
            if reason is None:
                break
            conflict = _resolvent(conflict, reason, label)
        self._add(conflict)
        return conflict

    def _add(self, clause: _Clause) -> None:
        for label in clause.labels:
            self._having[label].append(len(self._clauses))
        self._free.append(sum(label not in self._taken for label in clause.labels))
        self._clauses.append(clause)

    def _take(self, label: int, reason: _Clause | None) -> None:
        self._trail.append((label, reason))
        self._taken.add(label)
        for i in self._having[label]:
            self._free[i] -= 1

    def _taken_back(self) -> tuple[int, _Clause | None]:
        label, reason = self._trail.pop()
        self._taken.remove(label)
        for i in self._having[label]:
            self._free[i] += 1
        return label, reason

    def _conflict(self) -> _Clause | None:
        """Takes alternatives until all of a clause are taken. The clauses cannot all be kept, so that happens."""
        while self._looks < LOOKS:
            self._looks += len(self._clauses)
            if 0 in self._free:
                return self._clauses[self._free.index(0)]
            forced = self._forced()
            if forced is None:
                self._take(self._guess(), None)
            else:
                self._take(*forced)
        return None

    def _forced(self) -> tuple[int, _Clause] | None:
        for i, free in enumerate(self._free):
            if free == 1:
                (label,) = (label for label in self._clauses[i].labels if label not in self._taken)
                if label ^ 1 not in self._taken:
                    return label ^ 1, self._clauses[i]
        return None

    def _guess(self) -> int:
        """What is in most of the clauses that have fewest labels left."""
        open_clauses = [
            (self._free[i], [label for label in clause.labels if label not in self._taken])
            for i, clause in enumerate(self._clauses)
            if not any(label ^ 1 in self._taken for label in clause.labels)
        ]
        fewest = min(free for free, _ in open_clauses)
        counted = Counter(label for free, labels in open_clauses if free == fewest for label in labels)
        return min(counted, key=lambda label: (-counted[label], label))


def _resolvent(under: _Clause, reason: _Clause, label: int) -> _Clause:
    """Of one clause with `label` and one with the other alternative of its choice."""
    labels = (set(under.labels) - {label}) | (set(reason.labels) - {label ^ 1})
    pair = under.refutation, reason.refutation
    return _Clause(
        labels=tuple(sorted(labels)),
        refutation=Refutation(choice=label >> 1, alternatives=pair if label & 1 == 0 else (pair[1], pair[0])),
        cycles=under.cycles + reason.cycles,
    )
