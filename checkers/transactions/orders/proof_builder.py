"""Proofs from edges: a cycle among them, and for each forced edge in it the path that forced it, down to the history.

Only what the cycle needs is looked up. A path uses edges that were derived earlier, so nothing rests on itself; it is
a shortest one, and is sought among events that the clocks put between its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from checkers.api.verdict import Verdict
from checkers.kernels.adjacency import by_source
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.kernels.gap_filling import next_place, require_filled
from checkers.transactions.evidence.proof import Because, Decision, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.events import BECAUSE, Edges, Events
from checkers.transactions.orders.saturation import Clocks, Saturated, is_open
from harness.compiled import compiled


@dataclass
class Argument:
    """Steps so far, and which edges they are of."""

    saturated: Saturated
    steps: list[ProofStep] = field(default_factory=list)
    _numbers: dict[ProofStep, int] = field(default_factory=dict)
    _of_edge: dict[int, int] = field(default_factory=dict)

    @property
    def events(self) -> Events:
        return self.saturated.events

    @property
    def edges(self) -> Edges:
        return self.saturated.edges

    def state(self, step: ProofStep) -> int:
        """The number of the step, which is taken if it was not yet."""
        if step not in self._numbers:
            self._numbers[step] = len(self.steps)
            self.steps.append(step)
        return self._numbers[step]

    def along(self, path: Sequence[int]) -> tuple[int, ...]:
        """Numbers of steps for a path of edges, taken with all that they rest on. Moments are left out: what ended
        before one began before what began after it."""
        premises: dict[int, list[int]] = {}
        wanted = [edge for edge in path if edge not in self._of_edge]
        while wanted:
            edge = wanted.pop()
            if edge in premises or edge in self._of_edge:
                continue
            premises[edge] = self._premise(edge)
            wanted += premises[edge]
        for edge in sorted(premises):
            self._of_edge[edge] = self._stated(edge, premises[edge])
        return tuple(self._numbered(path))

    def cycle(self) -> tuple[int, ...]:
        """Of the saturated edges, as steps."""
        edges = self.edges
        path = short_cycle(self._first, self._by_source, edges.target)
        # It must not begin at a moment, which is between two of its steps.
        begin = next(i for i, edge in enumerate(path) if edges.source[edge] < self.events.moments_from)
        return self.along([*path[begin:].tolist(), *path[:begin].tolist()])

    def between(self, source: int, target: int) -> tuple[int, ...]:
        """Steps from one event to another that it certainly precedes."""
        return self.along(self._path(source, target, len(self.edges)))

    def initial(self, target: int) -> tuple[int, ...]:
        """Steps from INITIAL's begin to an event."""
        events = self.events
        begin = target - target % events.width
        found = [ProofStep(source=events.width - 1, target=begin, because=Because.INITIAL)]
        if events.width > 1:
            found.insert(0, self.inside(INITIAL))
        if target != begin:
            found.append(self.inside(target // events.width))
        return tuple(map(self.state, found))

    def inside(self, transaction: int) -> ProofStep:
        return ProofStep(source=2 * transaction, target=2 * transaction + 1, because=Because.INSIDE)

    def _numbered(self, path: Sequence[int]) -> Iterator[int]:
        ended = -1
        for edge in path:
            source, target = int(self.edges.source[edge]), int(self.edges.target[edge])
            if source < self.events.moments_from <= target:
                ended = source
            elif target < self.events.moments_from <= source:
                yield self.state(ProofStep(source=ended, target=target, because=Because.REALTIME))
            elif source < self.events.moments_from:
                yield self._of_edge[edge]

    def _premise(self, edge: int) -> list[int]:
        """The path of earlier edges that forced this one."""
        edges, events = self.edges, self.events
        source, target = int(edges.source[edge]), int(edges.target[edge])
        reader, writer = int(edges.reader[edge]), int(edges.writer[edge])
        because = BECAUSE[edges.because[edge]]
        if because is Because.OVERWRITTEN:
            return self._path(source, reader * events.width, edge)
        if because is Because.OVERWRITES and writer != INITIAL:
            return self._path(writer * events.width, target, edge)
        if because is Because.EXCLUSIVE:
            return self._path(source - 1, target + 1, edge)
        return []

    def _stated(self, edge: int, premise: list[int]) -> int:
        edges = self.edges
        source, target = int(edges.source[edge]), int(edges.target[edge])
        because = BECAUSE[edges.because[edge]]
        if because is Because.REALTIME:
            return -1
        steps = tuple(self._numbered(premise))
        if because is Because.OVERWRITES and edges.writer[edge] == INITIAL:
            steps = self.initial(target)
        return self.state(
            ProofStep(
                source=source,
                target=target,
                because=because,
                key=int(edges.key[edge]),
                reader=int(edges.reader[edge]),
                writer=int(edges.writer[edge]),
                path=steps,
            )
        )

    def _path(self, source: int, target: int, below: int) -> list[int]:
        """Fewest edges, all with numbers below that one; none if source is target."""
        if source == target:
            return []
        saturated, events = self.saturated, self.events
        # What does not rest on time says more, and to weaker models as well.
        for size in (self.events.moments_from, events.size):
            path = shortest_path(
                self._first,
                self._by_source,
                self.edges.target,
                saturated.clocks,
                source,
                target,
                below,
                size,
            )
            if len(path):
                found: list[int] = path.tolist()
                return found
        raise AssertionError(f"event {source} was taken to precede {target} without a reason")

    @cached_property
    def _outgoing(self) -> tuple[Int64, Int32]:
        return by_source(self.edges.source, self.events.size)

    @property
    def _first(self) -> Int64:
        return self._outgoing[0]

    @property
    def _by_source(self) -> Int32:
        return self._outgoing[1]


def contradiction(found: Saturated) -> Decision:
    """Of edges that make a cycle."""
    argument = Argument(found)
    cycle = argument.cycle()
    return Decision(verdict=Verdict.INVALID, proof=Proof(steps=tuple(argument.steps), cycle=cycle))


def rests_on(proof: Proof) -> set[Because]:
    """Reasons of all its steps."""
    found = set()
    pending = [proof]
    while pending:
        part = pending.pop()
        found |= {step.because for step in part.steps}
        pending += part.cases or ()
    return found


@compiled
def shortest_path(
    first: Int64,
    edges: Int32,
    targets: Int32,
    clocks: Clocks,
    source: int,
    target: int,
    below: int,
    size: int,
) -> Int64:
    """Edges with numbers below that one, through events below that size; none if there is no path."""
    by = np.full(size, -1, dtype=np.int32)
    from_ = np.empty(size, dtype=np.int32)
    queue = np.empty(size, dtype=np.int32)
    queue[0] = source
    at, end = 0, 1
    while at < end and (by[target] < 0):
        e = queue[at]
        at += 1
        for i in range(first[e], first[e + 1]):
            edge = edges[i]
            f = targets[edge]
            if edge >= below or f >= size or by[f] >= 0:
                continue
            if f != target and is_open(clocks, f, target):
                continue
            by[f] = edge
            from_[f] = e
            queue[end] = f
            end += 1
    return _traced(by, from_, source, target)


@compiled
def _traced(by: Int32, from_: Int32, source: int, target: int) -> Int64:
    length = 0
    e = target
    if by[target] < 0:
        return np.empty(0, dtype=np.int64)
    while length == 0 or e != source:
        e = from_[e]
        length += 1
    path = np.empty(length, dtype=np.int64)
    e = target
    for i in range(length - 1, -1, -1):
        path[i] = by[e]
        e = from_[e]
    return path


@compiled
def short_cycle(first: Int64, edges: Int32, targets: Int32) -> Int64:
    """Edges of a cycle, none shorter through some of its events. There must be one."""
    size = len(first) - 1
    core = _core(first, edges, targets)
    walk = np.empty(size, dtype=np.int32)
    seen = np.full(size, -1, dtype=np.int32)
    length = 0
    e = np.int32(np.argmax(core))
    while seen[e] < 0:
        seen[e] = length
        walk[length] = e
        length += 1
        for i in range(first[e], first[e + 1]):
            if core[targets[edges[i]]]:
                e = targets[edges[i]]
                break
    around = walk[seen[e] : length]
    best = np.empty(0, dtype=np.int64)
    for i in range(0, len(around), max(len(around) // 8, 1)):
        begin = around[i]
        by = np.full(size, -1, dtype=np.int32)
        from_ = np.empty(size, dtype=np.int32)
        queue = np.empty(size, dtype=np.int32)
        queue[0] = begin
        at, end = 0, 1
        while by[begin] < 0:
            e = queue[at]
            at += 1
            for j in range(first[e], first[e + 1]):
                f = targets[edges[j]]
                if core[f] and by[f] < 0:
                    by[f] = edges[j]
                    from_[f] = e
                    queue[end] = f
                    end += 1
        cycle = _traced(by, from_, begin, begin)
        if len(best) == 0 or len(cycle) < len(best):
            best = cycle
    return best


@compiled
def _core(first: Int64, edges: Int32, targets: Int32) -> Bool:
    """Events that are on cycles, or on the way from one to another."""
    size = len(first) - 1
    core = np.ones(size, dtype=np.bool_)
    before = np.zeros(size, dtype=np.int32)
    after = np.zeros(size, dtype=np.int32)
    sources = np.empty(len(targets), dtype=np.int32)
    back_first = np.zeros(size + 1, dtype=np.int64)
    for e in range(size):
        after[e] = first[e + 1] - first[e]
        for i in range(first[e], first[e + 1]):
            before[targets[edges[i]]] += 1
            back_first[targets[edges[i]] + 1] += 1
    back_first = np.cumsum(back_first)
    filled = back_first[:-1].copy()
    for e in range(size):
        for i in range(first[e], first[e + 1]):
            sources[next_place(filled, back_first, targets[edges[i]])] = e
    require_filled(filled, back_first)
    pending = np.empty(size, dtype=np.int32)
    end = 0
    for e in range(size):
        if before[e] == 0 or after[e] == 0:
            core[e] = False
            pending[end] = e
            end += 1
    while end > 0:
        end -= 1
        e = pending[end]
        for i in range(first[e], first[e + 1]):
            f = targets[edges[i]]
            before[f] -= 1
            if core[f] and before[f] == 0:
                core[f] = False
                pending[end] = f
                end += 1
        for i in range(back_first[e], back_first[e + 1]):
            f = sources[i]
            after[f] -= 1
            if core[f] and after[f] == 0:
                core[f] = False
                pending[end] = f
                end += 1
    return core
