"""Where events that run one after the other did not explain all reads: what of the order of versions is to be decided
there, as components, and the proof if nothing will do.

An order of events puts the versions of each key into an order. If that and the known edges make no cycle, there is an
order that explains everything. Otherwise the cycles say which transactions matter: those on them, those they read
from, and those that read from them, where one of several writers of a key is concerned. All that a component says is
known or one of two orders of writers, so a component without an answer refutes the whole history.
"""

from __future__ import annotations

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Int32, Int64, run_starts
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.events import Events
from checkers.transactions.orders.proof_builder import Argument
from checkers.transactions.orders.saturation import Saturated
from checkers.transactions.orders.strong_components import strong_components
from harness.compiled import compiled
from tests.references.orders_by_components.case_split import Case, around, proof_by_cases
from tests.references.orders_by_components.subproblem import Component, Refutation, those


def implied(events: Events, order: Int32) -> tuple[Int32, Int32]:
    """Edges (sources, targets) for the versions in the order in which they come here."""
    accesses = events.accesses
    place = np.empty(events.size, dtype=np.int64)
    place[order] = np.arange(len(order))
    key, writer = accesses.write_key, accesses.version_writer
    versions = np.lexsort((place[events.commit(writer)], key))
    before, after = versions[:-1], versions[1:]
    same = key[before] == key[after]
    before, after = before[same], after[same]
    # Of each version the one that comes next, of initial ones the first; -1 behind the last.
    following = np.full(len(key) + accesses.keys, -1, dtype=np.int64)
    following[before] = after
    firsts = versions[np.searchsorted(key[versions], np.unique(key))]
    following[len(key) + key[firsts]] = firsts
    overwriter = np.where(following >= 0, np.append(writer, -1)[following], -1)[accesses.read_version]
    missed = (overwriter >= 0) & (overwriter != accesses.reader)
    sources = np.concatenate((events.commit(writer[before]), events.begin(accesses.reader[missed])))
    targets = np.concatenate((events.begin(writer[after]), events.commit(overwriter[missed].astype(np.int32))))
    return sources, targets


def on_cycles(events: Events, source: Int32, target: Int32) -> list[Int32]:
    """Transactions of each strongly connected component with more than one of them, ascending."""
    first, targets = followers(source, target, events.size)
    number = strong_components(first, targets)[: len(events.committed) * events.width]
    shared = np.flatnonzero(np.bincount(number)[number] > 1)
    number, transaction = number[shared], shared // events.width
    order = np.lexsort((transaction, number))
    order = order[run_starts(number[order], transaction[order])]
    number, transaction = number[order], transaction[order]
    parts = np.split(transaction.astype(np.int32), np.flatnonzero(np.diff(number)) + 1)
    return sorted((part for part in parts if len(part) > 1), key=lambda part: int(part[0]))


def surroundings(events: Events, transactions: Int32) -> Int32:
    """With whom they read from, and who reads from them, where others of them write the same key."""
    accesses = events.accesses
    versions = those(accesses.write_first, transactions)
    keys, writers = np.unique(accesses.write_key[versions], return_counts=True)
    reads = those(accesses.read_first, transactions)
    read_from = accesses.read_writer[reads[np.isin(accesses.read_key[reads], keys)]]
    rivalled = versions[np.isin(accesses.write_key[versions], keys[writers > 1])]
    readers = accesses.readers[those(accesses.readers_first, rivalled)]
    found = np.unique(np.concatenate((transactions, read_from, readers)))
    around: Int32 = found[found != INITIAL]
    return around


def component(found: Saturated, transactions: Int32) -> Component:
    """All that is open between these transactions, which ascend."""
    events, accesses = found.events, found.events.accesses
    width = events.width
    numbers = (transactions[:, None] * width + np.arange(width)).reshape(-1).astype(np.int32)
    clock, chain, place = found.clock[numbers], events.chain[numbers], events.place[numbers]
    depth = clock.sum(axis=1, dtype=np.int64)
    source, target = _between(clock, chain, place, np.lexsort((place, chain)), np.argsort(-depth, kind="stable"))
    versions = those(accesses.write_first, transactions)
    versions = versions[np.argsort(accesses.write_key[versions], kind="stable")]
    key = accesses.write_key[versions]
    writer = np.searchsorted(transactions, accesses.version_writer[versions])
    pairs = _open_pairs(key, writer, width, clock, chain, place)
    reads = those(accesses.readers_first, versions)
    version = np.repeat(np.arange(len(versions)), np.diff(accesses.readers_first)[versions])
    reader = accesses.readers[reads]
    place_of_reader = np.minimum(np.searchsorted(transactions, reader), len(transactions) - 1)
    inside = transactions[place_of_reader] == reader
    first, alternatives = _alternatives(pairs, writer, version[inside], place_of_reader[inside], width)
    return Component(
        events=numbers,
        edges=np.stack((source, target), axis=1),
        key=key[pairs[:, 0]],
        writers=transactions[writer[pairs]],
        first=first,
        alternatives=alternatives,
    )


def refuted_by_cases(found: Saturated, open_: Component, refutation: Refutation) -> Proof:
    """The refutation in steps: what is known first, then each case with what only follows there."""
    return proof_by_cases(refutation, _Citing(found, open_))


class _Citing:
    def __init__(self, found: Saturated, open_: Component) -> None:
        self.argument = Argument(found)
        self._width = found.events.width
        self._component = open_
        self._open_edges = {tuple(edge) for edge in open_.edges.tolist()}

    def cite(self, case: Case) -> None:
        for source, target in around(case.refutation.cycle):
            if (source, target) in self._open_edges:
                self._between(source, target)
        if case.label >= 0 and self._width > 1:
            for writer in self._component.writers[case.label // 2].tolist():
                self.argument.state(self.argument.inside(writer))

    def assumed(self, label: int) -> ProofStep:
        return self._step(label, 0, ())

    def _between(self, source: int, target: int) -> tuple[int, ...]:
        events = self._component.events
        return self.argument.between(int(events[source]), int(events[target]))

    def cycle(self, cases: list[Case], case: Case, own: list[ProofStep], first: int) -> tuple[int, ...]:
        taken: dict[tuple[int, int], tuple[int, int, int]] = {}
        above = case
        while above.label >= 0:
            low, high = self._component.first[above.label : above.label + 2].tolist()
            for row in range(low, high):
                edge = tuple(self._component.alternatives[row].tolist())
                taken[edge] = (above.label, row - low, first - case.depth + above.depth)
            above = cases[above.under]
        numbers: list[int] = []
        for edge in around(case.refutation.cycle):
            if edge in self._open_edges:
                numbers += self._between(*edge)
                continue
            label, row, assumed = taken[edge]
            if row == 0:
                numbers.append(assumed)
                continue
            path: tuple[int, ...] = (assumed,)
            if self._width > 1:
                one, other = self._component.ordered(label)
                inside = self.argument.inside
                path = (self.argument.state(inside(one)), assumed, self.argument.state(inside(other)))
            own.append(self._step(label, row, path))
            numbers.append(first + len(own) - 1)
        return tuple(numbers)

    def _step(self, label: int, row: int, path: tuple[int, ...]) -> ProofStep:
        low = int(self._component.first[label])
        source, target = self._component.events[self._component.alternatives[low + row]].tolist()
        key = int(self._component.key[label // 2])
        if row == 0:
            return ProofStep(source=source, target=target, because=Because.CASE, key=key)
        return ProofStep(
            source=source,
            target=target,
            because=Because.OVERWRITES,
            key=key,
            reader=source // self._width,
            writer=self._component.ordered(label)[0],
            path=path,
        )


@compiled
def _between(clock: Int32, chain: Int32, place: Int32, by_chain: Int64, latest_first: Int64) -> tuple[Int32, Int32]:
    """Events that precede each other, without those pairs that follow from others."""
    size = len(clock)
    source = np.empty(16, dtype=np.int32)
    target = np.empty(16, dtype=np.int32)
    edges = 0
    is_last = np.zeros(size, dtype=np.bool_)
    for b in range(size):
        is_last[:] = False
        at = 0
        while at < size:
            c = chain[by_chain[at]]
            latest = -1
            while at < size and chain[by_chain[at]] == c:
                if c >= 0 and place[by_chain[at]] <= clock[b, c]:
                    latest = by_chain[at]
                at += 1
            if latest >= 0:
                is_last[latest] = True
        for a in latest_first:
            if not is_last[a]:
                continue
            if edges == len(source):
                source = np.append(source, source)
                target = np.append(target, target)
            source[edges], target[edges] = a, b
            edges += 1
            for other in range(size):
                if is_last[other] and clock[a, chain[other]] >= place[other]:
                    is_last[other] = False
    return source[:edges].copy(), target[:edges].copy()


@compiled
def _open_pairs(key: Int32, writer: Int64, width: int, clock: Int32, chain: Int32, place: Int32) -> Int64:
    """Rows of two writes of one key, of which neither is known to come before the other."""
    found = np.empty((16, 2), dtype=np.int64)
    pairs = 0
    for i in range(len(key)):
        j = i + 1
        while j < len(key) and key[j] == key[i]:
            known = False
            for u, v in ((writer[i], writer[j]), (writer[j], writer[i])):
                done, begun = u * width + width - 1, v * width
                known |= chain[done] >= 0 and clock[begun, chain[done]] >= place[done]
            if not known:
                if pairs == len(found):
                    found = np.concatenate((found, found))
                found[pairs, 0], found[pairs, 1] = i, j
                pairs += 1
            j += 1
    return found[:pairs].copy()


@compiled
def _alternatives(pairs: Int64, writer: Int64, read_version: Int64, reader: Int64, width: int) -> tuple[Int64, Int32]:
    """Of each pair of versions, for either order: where the edges begin; and the edges. Reads are sorted by version."""
    last = width - 1
    first = np.zeros(2 * len(pairs) + 1, dtype=np.int64)
    for written in range(2):
        edges = np.empty((first[-1] if written else 0, 2), dtype=np.int32)
        at = 0
        for i in range(len(pairs)):
            for j in range(2):
                before = pairs[i, j]
                u, v = writer[before], writer[pairs[i, 1 - j]]
                if written:
                    edges[at, 0], edges[at, 1] = u * width + last, v * width
                at += 1
                for read in range(np.searchsorted(read_version, before), len(reader)):
                    if read_version[read] != before:
                        break
                    if reader[read] == v:
                        continue
                    if written:
                        edges[at, 0], edges[at, 1] = reader[read] * width, v * width + last
                    at += 1
                first[2 * i + j + 1] = at
    return first, edges
