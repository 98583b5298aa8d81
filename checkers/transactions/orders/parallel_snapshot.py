"""Parallel snapshot isolation, plain or with sessions: whether the versions of each key can be put into an order in
which no cycle of dependencies has at most one anti-dependency. Of items alone, a consistent view is the same.

Transactions see along paths of what they read, what their session did before and what was overwritten; one that sees
a writer of a key reads it or a later version. That alone forces most of the order of versions. What is left is tried in
an order of transactions, and where a reader then sees what was overwritten too early, it is solved as a component.

The order of a decision is one of transactions: their reads, sessions and versions all go along with it. It is no order
in which they took effect everywhere, and its reads are not of the last write before.

Sources: Cerone, Gotsman, Yang, "Transaction Chopping for Parallel Snapshot Isolation" (DISC 2015) for the cycles; Adya
(1999) for PL-2+.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Int32, Int64
from checkers.transactions.evidence.proof import (
    Because,
    Bound,
    Decision,
    Established,
    Proof,
    ProofStep,
)
from checkers.transactions.history.committed import INITIAL, Committed
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.orders.bounded_propagation import forced_by_short_paths
from checkers.transactions.orders.bounds import DEMANDED, Bounds
from checkers.transactions.orders.case_split import Case, around, proof_by_cases
from checkers.transactions.orders.events import (
    Accesses,
    Events,
    ExternalOrder,
    Isolation,
    chained,
    events,
)
from checkers.transactions.orders.long_forks import without_forks
from checkers.transactions.orders.order_constraints import component, implied
from checkers.transactions.orders.order_search import FEW_STEPS, rearranged
from checkers.transactions.orders.proof_builder import Argument
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.refinement import (
    Counterexample,
    OrderTheory,
    Repair,
    contradiction,
    given_up_at_once,
    given_up_before,
    rests_on,
    vector_clocks_too_large,
)
from checkers.transactions.orders.saturation import Clocks, Saturated, precedes, saturated
from checkers.transactions.orders.schedule import scheduled
from checkers.transactions.orders.subhistory import excerpt, of_the_whole
from checkers.transactions.orders.subproblem import Component, Forbidden, Refutation
from harness.compiled import compiled

MODELS = {
    ConsistencyModel.CONSISTENT_VIEW: ExternalOrder.NOTHING,
    ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION: ExternalOrder.NOTHING,
    ConsistencyModel.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION: ExternalOrder.SESSION,
}

FORKS = 4
"""So often other reads are left out of those by which a history is none of snapshots."""
STEPS = 1 << 28
"""So many are taken from readers back to what they may have seen, an order."""
CONFLICTS = 1_000
"""So many readers that see too much are looked at, an order."""


def parallel_snapshot_decided(committed: Committed, model: ConsistencyModel, bounds: Bounds = DEMANDED) -> Decision:
    """With sessions first, which leaves less open: an order will do without them as well, and so will a proof in which
    none of their steps is."""
    decision = _decided(committed, ExternalOrder.SESSION, bounds)
    if MODELS[model] is ExternalOrder.SESSION or decision.verdict is Verdict.VALID:
        return decision
    if decision.proof and Because.SESSION not in rests_on(decision.proof):
        return decision
    if search_budget.is_over():
        return given_up_before(decision)
    return _decided(committed, ExternalOrder.NOTHING, bounds)


def _decided(committed: Committed, kept: ExternalOrder, bounds: Bounds) -> Decision:
    known = events(committed, Isolation.SERIALIZABLE, kept)
    found = forced_by_short_paths(known, OrderKind.PER_SITE)
    if found.cyclic:
        return contradiction(found)
    updates = _lost_update(known.accesses)
    if len(updates) and len(updates) < len(committed):
        with search_budget.searching_until(None):
            decision = _decided(excerpt(committed, updates), kept, DEMANDED)
        assert decision.proof is not None, "of two updates of one version one is lost"
        return replace(decision, proof=of_the_whole(decision.proof, updates, known.width))
    if search_budget.is_over() and vector_clocks_too_large(committed):
        return given_up_at_once(committed)
    guessed = _order_of_snapshots(known, bounds)
    if guessed is not None:
        return guessed
    theory = OrderTheory(tried=_tried, component=_component, refuted=_refuted)
    return Repair(saturated(chained(known, bounds.cells), OrderKind.PER_SITE), theory, bounds).decision()


def _order_of_snapshots(events: Events, bounds: Bounds) -> Decision | None:
    """VALID if the history is one of snapshot isolation, which is stronger, and such an order was found: that of its
    commits will do, for reads, sessions and versions go along with it. So it will where some reads were left out, if
    these have seen nothing of what they missed."""
    committed, width = events.committed, Isolation.SNAPSHOT.value
    steps = bounds.steps if vector_clocks_too_large(committed) else FEW_STEPS
    for pick in range(FORKS):
        left = without_forks(committed, events.kept, pick)
        guessed = rearranged(left[0], steps) if left else None
        if left is None or guessed is None or guessed.order is None:
            return None
        order = guessed.order[guessed.order % width == width - 1] // width
        if not left[1] or seeing_too_much(events, order, events.base.source, events.base.target) == ([], True):
            return replace(guessed, order=order)
    return None


def _lost_update(accesses: Accesses) -> Int32:
    """INITIAL, the writer of a version, and two transactions that read it and write its key: whichever comes second
    sees the other and does not read what it wrote. None if there are no such ones."""
    places = accesses.version_writer.astype(np.int64) * accesses.keys + accesses.write_key
    updates = np.flatnonzero(np.isin(accesses.reader.astype(np.int64) * accesses.keys + accesses.read_key, places))
    order = updates[np.argsort(accesses.read_version[updates], kind="stable")]
    twice = np.flatnonzero(accesses.read_version[order[1:]] == accesses.read_version[order[:-1]])
    if not len(twice):
        return np.zeros(0, dtype=np.int32)
    one, other = order[twice[0]], order[twice[0] + 1]
    rows = np.array([INITIAL, accesses.read_writer[one], accesses.reader[one], accesses.reader[other]], dtype=np.int32)
    return np.unique(rows)


def _refuted(found: Saturated, open_: Component, refutation: Refutation) -> Proof:
    return proof_by_cases(refutation, _Citing(found, open_))


def _tried(events: Events, source: Int32, target: Int32) -> Decision | Counterexample:
    order, _ = scheduled(events, source, target)
    wrong, looked_at_all = seeing_too_much(events, order, source, target)
    if wrong:
        return Counterexample(components=wrong, is_all=looked_at_all)
    if looked_at_all:
        return Decision(verdict=Verdict.VALID, order=order)
    return Decision(verdict=Verdict.UNKNOWN, established=Established(bound=Bound.PATHS, orders=1))


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
