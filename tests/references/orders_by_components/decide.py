"""Decisions by components, as they were made before one solver made them: the oracle for that solver.

An order is run greedily. Where it is wrong, that with its surroundings is a component, whose choices a SAT solver
makes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from checkers.api.verdict import Verdict
from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Int32, Int64
from checkers.transactions.evidence.proof import Because, Decision, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.events import Events
from checkers.transactions.orders.proof_builder import Argument
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.replay import explains
from checkers.transactions.orders.saturation import Clocks, Saturated, precedes
from harness.compiled import compiled
from tests.references.orders_by_components.case_split import Case, around, proof_by_cases
from tests.references.orders_by_components.order_constraints import component, implied, on_cycles, refuted_by_cases
from tests.references.orders_by_components.refinement import Counterexample, OrderTheory, Repair
from tests.references.orders_by_components.schedule import scheduled
from tests.references.orders_by_components.subproblem import Component, Forbidden, Refutation

STEPS = 1 << 28
"""So many are taken from readers back to what they may have seen, an order."""
CONFLICTS = 1_000
"""So many readers that see too much are looked at, an order."""


def decided_by_components(found: Saturated, orders: OrderKind) -> Decision:
    return Repair(found, ONE_ORDER if orders is OrderKind.TOTAL else MANY_ORDERS).decision()


def _tried(events: Events, source: Int32, target: Int32) -> Decision | Counterexample:
    order, forced = scheduled(events, source, target)
    if forced:
        more_source, more_target = implied(events, order)
        source, target = np.concatenate((source, more_source)), np.concatenate((target, more_target))
        wrong = on_cycles(events, source, target)
        if wrong:
            return Counterexample(components=wrong)
        order, _ = scheduled(events, source, target)
    order = order[order < len(events.committed) * events.width]
    assert explains(events.accesses, events.width, order), "an order without a cycle explains everything"
    return Decision(verdict=Verdict.VALID, order=order)


ONE_ORDER = OrderTheory(tried=_tried, component=component, refuted=refuted_by_cases)


def _refuted(found: Saturated, open_: Component, refutation: Refutation) -> Proof:
    return proof_by_cases(refutation, _Citing(found, open_))


def _tried_at_places(events: Events, source: Int32, target: Int32) -> Decision | Counterexample:
    order, _ = scheduled(events, source, target)
    wrong, looked_at_all = seeing_too_much(events, order, source, target)
    if wrong:
        return Counterexample(components=wrong)
    if looked_at_all:
        return Decision(verdict=Verdict.VALID, order=order)
    return Decision(verdict=Verdict.UNKNOWN)


def seeing_too_much(events: Events, order: Int32, source: Int32, target: Int32) -> tuple[list[Int32], bool]:
    """With the versions in the order in which they come here: of readers that see the writer of the next version, the
    transactions on the way from that one to the reader; and whether all readers were looked at."""
    accesses = events.accesses
    place = np.empty(events.size, dtype=np.int64)
    place[order] = np.arange(len(order))
    sources, targets = implied(events, order)
    overwrites = len(accesses.write_key) - len(np.unique(accesses.write_key))
    reader, overwriter = sources[overwrites:], targets[overwrites:]
    suspect = place[overwriter] < place[reader]
    first, before = followers(
        np.concatenate((target, targets[:overwrites])), np.concatenate((source, sources[:overwrites])), events.size
    )
    ends, nodes, looked_at_all = _ways(first, before, place, overwriter[suspect], reader[suspect])
    return [np.unique(way) for way in np.split(nodes, ends)[:-1]], bool(looked_at_all)


@compiled
def _ways(first: Int64, before: Int32, place: Int64, begins: Int32, ends: Int32) -> tuple[Int64, Int32, bool]:
    """Shortest paths from each begin to its end, where there is one."""
    seen = np.full(len(first) - 1, -1, dtype=np.int32)
    leads_to = np.empty(len(first) - 1, dtype=np.int32)
    queue = np.empty(len(first) - 1, dtype=np.int32)
    cuts = np.empty(CONFLICTS, dtype=np.int64)
    nodes = np.empty(16, dtype=np.int32)
    found, length, steps = 0, 0, 0
    for i in range(len(begins)):
        begin, end = begins[i], ends[i]
        queue[0], at, count = end, 0, 1
        seen[end] = i
        while at < count and seen[begin] != i:
            t = queue[at]
            at += 1
            steps += first[t + 1] - first[t]
            for j in range(first[t], first[t + 1]):
                u = before[j]
                if seen[u] != i and place[u] >= place[begin]:
                    seen[u], leads_to[u] = i, t
                    queue[count] = u
                    count += 1
        if seen[begin] == i:
            t = begin
            while True:
                if length == len(nodes):
                    nodes = np.append(nodes, nodes)
                nodes[length] = t
                length += 1
                if t == end:
                    break
                t = leads_to[t]
            cuts[found] = length
            found += 1
        if found == CONFLICTS or steps > STEPS:
            return cuts[:found].copy(), nodes[:length].copy(), i == len(begins) - 1
    return cuts[:found].copy(), nodes[:length].copy(), True


def _component(found: Saturated, transactions: Int32) -> Component:
    """With anti-dependencies of its readers on writers that are known to come after what was read."""
    open_ = component(found, transactions)
    accesses = found.events.accesses
    position = np.full(found.events.size, -1, dtype=np.int32)
    position[open_.events] = np.arange(len(open_.events))
    reads = np.flatnonzero(position[accesses.reader] >= 0)
    rows = _anti_dependencies(
        accesses.reader[reads],
        accesses.read_key[reads],
        accesses.read_writer[reads],
        accesses.writers_first,
        accesses.writers,
        position,
        found.clocks,
    )
    return replace(open_, forbidden=Forbidden.AT_MOST_ONE_ANTI_DEPENDENCY, anti_dependencies=rows)


@compiled
def _anti_dependencies(
    reader: Int32,
    key: Int32,
    writer: Int32,
    writers_first: Int64,
    writers: Int32,
    position: Int32,
    clocks: Clocks,
) -> Int32:
    """Rows (reader, writer) of positions: another writer of the key that is known to come after what was read."""
    rows = np.empty((16, 2), dtype=np.int32)
    count = 0
    for i in range(len(reader)):
        w = writer[i]
        for j in range(writers_first[key[i]], writers_first[key[i] + 1]):
            u = writers[j]
            if position[u] < 0 or u in (reader[i], w):
                continue
            if w == INITIAL or precedes(clocks, w, u):
                if count == len(rows):
                    rows = np.concatenate((rows, rows))
                rows[count, 0], rows[count, 1] = position[reader[i]], position[u]
                count += 1
    return rows[:count].copy()


class _Citing:
    """An edge that is known is a path of what transactions see, or an anti-dependency."""

    def __init__(self, found: Saturated, open_: Component) -> None:
        self.argument = Argument(found)
        self._component = open_
        self._open_edges = {tuple(edge) for edge in open_.edges.tolist()}
        self._known_anti = {tuple(edge) for edge in open_.anti_dependencies.tolist()}

    def cite(self, case: Case) -> None:
        for source, target in around(case.refutation.cycle):
            if (source, target) in self._open_edges:
                self._between(source, target)
            elif (source, target) in self._known_anti:
                self._overwritten(source, target)

    def assumed(self, label: int) -> ProofStep:
        one, other = self._component.ordered(label)
        return ProofStep(source=one, target=other, because=Because.CASE, key=int(self._component.key[label // 2]))

    def cycle(self, cases: list[Case], case: Case, own: list[ProofStep], first: int) -> tuple[int, ...]:
        ordered: dict[tuple[int, int], int] = {}
        """Edge of two writers -> number of the step that assumes it."""
        overwritten: dict[tuple[int, int], tuple[int, int]] = {}
        """Edge of a reader -> (label, number of that step)."""
        above = case
        while above.label >= 0:
            low, high = self._component.first[above.label : above.label + 2].tolist()
            (one, *behind) = map(tuple, self._component.alternatives[low:high].tolist())
            number = first - case.depth + above.depth
            ordered[one] = number
            overwritten |= dict.fromkeys(behind, (above.label, number))
            above = cases[above.under]
        numbers: list[int] = []
        sees: list[int] = []
        missed: tuple[int, int] | None = None
        link: tuple[int, ...]
        for edge in around(case.refutation.cycle):
            if edge in self._open_edges:
                numbers += self._between(*edge)
            elif edge in ordered:
                numbers.append(ordered[edge])
            else:
                # What comes behind is the way from the overwriter on, what came before the way to the reader.
                missed, sees, numbers = edge, numbers, []
        if missed is None:
            return tuple(numbers)
        path = (*numbers, *sees)
        reader, overwriter = (int(self._component.events[position]) for position in missed)
        if missed in overwritten:
            label, number = overwritten[missed]
            writer, key, link = self._component.ordered(label)[0], int(self._component.key[label // 2]), (number,)
        else:
            writer, key, link = self._overwritten(*missed)
        own.append(
            ProofStep(
                source=overwriter,
                target=writer,
                because=Because.OVERWRITTEN,
                key=key,
                reader=reader,
                writer=writer,
                path=path,
            )
        )
        return (*link, first + len(own) - 1)

    def _between(self, source: int, target: int) -> tuple[int, ...]:
        events = self._component.events
        return self.argument.between(int(events[source]), int(events[target]))

    def _overwritten(self, reader: int, overwriter: int) -> tuple[int, int, tuple[int, ...]]:
        """(writer that was read from, key, steps from it to the overwriter), of what is known."""
        accesses = self.argument.events.accesses
        r, u = (int(self._component.events[position]) for position in (reader, overwriter))
        clocks = self.argument.saturated.clocks
        for i in range(int(accesses.read_first[r]), int(accesses.read_first[r + 1])):
            w, key = int(accesses.read_writer[i]), int(accesses.read_key[i])
            of_key = accesses.writers[accesses.writers_first[key] : accesses.writers_first[key + 1]]
            if u in of_key and w == INITIAL:
                return w, key, self.argument.initial(u)
            if u in of_key and clocks.chain[w] >= 0 and clocks.clock[u, clocks.chain[w]] >= clocks.place[w]:
                return w, key, self.argument.between(w, u)
        raise AssertionError("a known anti-dependency without a read")


MANY_ORDERS = OrderTheory(tried=_tried_at_places, component=_component, refuted=_refuted)
