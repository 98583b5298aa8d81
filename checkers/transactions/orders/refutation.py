"""Writes a refutation as a proof: first the steps that are known, then each case with the steps that only follow there.

The last nogood of a search has no literals. If a nogood follows from two others, which forbid one alternative of a
choice each, each alternative is a case, and the nogood that forbids it is followed in turn. If a nogood follows from
the history, the orders of versions that were assumed on the way to it close a cycle with known edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkers.kernels.adjacency import by_source
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.events import NO_CHAIN
from checkers.transactions.orders.nogoods import CYCLE, NOGOODS
from checkers.transactions.orders.proof_builder import Argument, shortest_path
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.saturation import Clocks, Saturated
from checkers.transactions.orders.solver import IMPOSSIBLE, Search

MOST_CASES = 10_000
"""The most cases of a proof. A refutation with more is not written down."""


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A place in the tree of cases."""

    nogood: int
    under: int = -1
    """The case in which this one is, by its place in a list; or -1."""
    depth: int = 0
    label: int = -1
    """2 * choice + alternative: what is assumed."""


def _assumptions(cases: Sequence[_Case], case: _Case) -> Iterator[_Case]:
    """The case and those that it is in, as far as something is assumed in them."""
    while case.label >= 0:
        yield case
        case = cases[case.under]


class _Edge(NamedTuple):
    """An edge that a label adds to the known ones."""

    source: int
    target: int
    label: int
    reader: int
    """INITIAL for the edge from one writer to the other."""


class _Leaf(NamedTuple):
    """A cycle, or a way by which a reader sees too much."""

    path: Sequence[tuple[int, ...] | _Edge]
    """Numbers of known steps, and edges of labels."""
    missed: tuple[int, int, int] | None
    """(label, reader, overwriter) if a reader sees too much. Then the path leads from the overwriter to the reader."""


def refutation(found: Saturated, search: Search, orders: OrderKind) -> Proof | None:
    """None if there are too many cases."""
    return _Refutation(found, search, orders).proof()


class _Refutation:
    def __init__(self, found: Saturated, search: Search, orders: OrderKind) -> None:
        self.found = found
        self.argument = Argument(found)
        self.search = search
        self.orders = orders
        self.width = found.events.width

    def proof(self) -> Proof | None:
        cases = self._cases()
        if cases is None:
            return None
        leaves = {at: self._leaf(case.nogood) for at, case in enumerate(cases) if self._choice(case.nogood) == CYCLE}
        steps = tuple(self.argument.steps)
        branches: dict[int, list[Proof]] = {}
        for at in range(len(cases) - 1, -1, -1):
            case = cases[at]
            own = [] if case.label < 0 else [self._assumed(case.label)]
            cycle: tuple[int, ...] = ()
            two: tuple[Proof, Proof] | None = None
            if at in leaves:
                cycle = self._concluded(cases, case, leaves[at], own, len(steps) + max(case.depth - 1, 0))
            else:
                first, second = branches.pop(at)
                two = first, second
            if case.under < 0:
                return Proof(steps=(*steps, *own), cycle=cycle, cases=two)
            branches.setdefault(case.under, []).insert(0, Proof(steps=tuple(own), cycle=cycle, cases=two))
        raise AssertionError("a refutation without a first case")

    def _choice(self, nogood: int) -> int:
        return int(self.search.nogoods.choice[nogood])

    def _cases(self) -> list[_Case] | None:
        cases = [_Case(nogood=int(self.search.nogoods.used[NOGOODS]) - 1)]
        at = 0
        while at < len(cases) <= MOST_CASES:
            cases[at] = case = self._within_assumptions(cases, cases[at])
            if (choice := self._choice(case.nogood)) != CYCLE:
                for alternative, reason in enumerate(self.search.nogoods.reasons[case.nogood].tolist()):
                    label = 2 * choice + alternative
                    cases.append(_Case(nogood=reason, under=at, depth=case.depth + 1, label=label))
            at += 1
        return cases if at == len(cases) else None

    def _within_assumptions(self, cases: Sequence[_Case], case: _Case) -> _Case:
        """With the first nogood on the way to reasons of which no alternative is assumed already, or impossible."""
        assumed = {above.label for above in _assumptions(cases, case)}
        nogood = case.nogood
        while (choice := self._choice(nogood)) != CYCLE:
            reasons = self.search.nogoods.reasons[nogood].tolist()
            if reasons[0] == IMPOSSIBLE or 2 * choice + 1 in assumed:
                nogood = reasons[1]
            elif reasons[1] == IMPOSSIBLE or 2 * choice in assumed:
                nogood = reasons[0]
            else:
                break
        return _Case(nogood=nogood, under=case.under, depth=case.depth, label=case.label)

    def _versions(self, label: int) -> tuple[int, int]:
        """(earlier, later)"""
        one, other = int(self.search.choices.one[label >> 1]), int(self.search.choices.other[label >> 1])
        return (other, one) if label & 1 else (one, other)

    def _writer(self, version: int) -> int:
        writer = self.found.events.accesses.version_writer
        return int(writer[version]) if version < len(writer) else INITIAL

    def _edges(self, label: int) -> list[_Edge]:
        earlier, later = self._versions(label)
        w, u = self._writer(earlier), self._writer(later)
        last = self.width - 1
        edges = [] if w == INITIAL else [_Edge(w * self.width + last, u * self.width, label, INITIAL)]
        if self.orders is OrderKind.TOTAL:
            edges += [_Edge(r * self.width, u * self.width + last, label, r) for r in self._readers(earlier) if r != u]
        return edges

    def _readers(self, version: int) -> list[int]:
        accesses = self.found.events.accesses
        readers: list[int] = accesses.readers[
            accesses.readers_first[version] : accesses.readers_first[version + 1]
        ].tolist()
        return readers

    def _leaf(self, nogood: int) -> _Leaf:
        """What closes a cycle with these literals; the last one certainly is on it."""
        known = self.search.nogoods
        labels = known.literals[known.first[nogood] : known.first[nogood + 1]].tolist()
        graph = _Graph(self.found, [edge for label in labels for edge in self._edges(label)])
        for label in reversed(labels):
            for edge in self._edges(label):
                way = graph.path(edge.target, edge.source)
                if way is not None:
                    return self._stated(_Leaf((edge, *self._along(way)), None))
            earlier, later = self._versions(label)
            for reader in self._readers(earlier) if self.orders is OrderKind.PER_SITE else ():
                overwriter = self._writer(later)
                way = graph.path(overwriter, reader) if reader != overwriter else None
                if way is not None:
                    return self._stated(_Leaf(self._along(way), (label, reader, overwriter)))
        raise AssertionError("a nogood without a cycle")

    def _along(self, way: Sequence[int | _Edge]) -> list[tuple[int, ...] | _Edge]:
        """With stretches of what is known as steps."""
        parts: list[tuple[int, ...] | _Edge] = []
        stretch: list[int] = []
        for edge in (*way, None):
            if isinstance(edge, int):
                stretch.append(edge)
                continue
            if stretch:
                parts.append(self.argument.along(stretch))
                stretch = []
            if edge is not None:
                parts.append(edge)
        return parts

    def _stated(self, leaf: _Leaf) -> _Leaf:
        """With the known steps stated that those of its labels rest on."""
        for edge in leaf.path:
            if isinstance(edge, _Edge) and edge.reader != INITIAL:
                self._path_of(edge, -1)
        if leaf.missed is not None and self._writer(self._versions(leaf.missed[0])[0]) == INITIAL:
            self.argument.initial(leaf.missed[2])
        return leaf

    def _path_of(self, edge: _Edge, assumed: int) -> tuple[int, ...]:
        """Steps from the begin of the version's writer to the commit of the next one's."""
        one, other = (self._writer(version) for version in self._versions(edge.label))
        if one == INITIAL:
            return self.argument.initial(edge.target)
        if self.width == 1:
            return (assumed,)
        inside = self.argument.inside
        return self.argument.state(inside(one)), assumed, self.argument.state(inside(other))

    def _key(self, label: int) -> int:
        return int(self.found.events.accesses.write_key[self._versions(label)[1]])

    def _assumed(self, label: int) -> ProofStep:
        (edge, *_) = self._edges(label)
        return ProofStep(source=edge.source, target=edge.target, because=Because.CASE, key=self._key(label))

    def _concluded(
        self, cases: Sequence[_Case], case: _Case, leaf: _Leaf, own: list[ProofStep], first: int
    ) -> tuple[int, ...]:
        """The cycle, as numbers of steps; those which only follow in this case are added to `own`, numbered from
        `first`."""
        assumed = {above.label: first - case.depth + above.depth for above in _assumptions(cases, case)}
        numbers: list[int] = []
        for edge in leaf.path:
            if not isinstance(edge, _Edge):
                numbers += edge
            elif edge.reader == INITIAL:
                numbers.append(assumed[edge.label])
            else:
                own.append(self._overwrites(edge, assumed.get(edge.label, -1)))
                numbers.append(first + len(own) - 1)
        if leaf.missed is None:
            return tuple(numbers)
        label, reader, overwriter = leaf.missed
        writer = self._writer(self._versions(label)[0])
        own.append(
            ProofStep(
                source=overwriter,
                target=writer,
                because=Because.OVERWRITTEN,
                key=self._key(label),
                reader=reader,
                writer=writer,
                path=tuple(numbers),
            )
        )
        link = self.argument.initial(overwriter) if writer == INITIAL else (assumed[label],)
        return (*link, first + len(own) - 1)

    def _overwrites(self, edge: _Edge, assumed: int) -> ProofStep:
        return ProofStep(
            source=edge.source,
            target=edge.target,
            because=Because.OVERWRITES,
            key=self._key(edge.label),
            reader=edge.reader,
            writer=self._writer(self._versions(edge.label)[0]),
            path=self._path_of(edge, assumed),
        )


class _Graph:
    """Known edges, and edges that are assumed."""

    def __init__(self, found: Saturated, assumed: Sequence[_Edge]) -> None:
        self._assumed = assumed
        self._forced = len(found.edges)
        self._size = found.events.size
        source = np.array([edge.source for edge in assumed], dtype=np.int32)
        target = np.array([edge.target for edge in assumed], dtype=np.int32)
        self._targets = np.concatenate((found.edges.target, target))
        self._first, self._edges = by_source(np.concatenate((found.edges.source, source)), self._size)
        # What is assumed is in no clock.
        nowhere = np.full(self._size, NO_CHAIN, dtype=np.int32)
        self._clocks = Clocks(np.empty((1, 1), dtype=np.int32), np.zeros(1, dtype=np.bool_), nowhere, nowhere)

    def path(self, source: int, target: int) -> list[int | _Edge] | None:
        """Fewest edges, those that are known by their numbers; none if source is target."""
        if source == target:
            return []
        way = shortest_path(
            self._first, self._edges, self._targets, self._clocks, source, target, len(self._targets), self._size
        )
        if not len(way):
            return None
        return [edge if edge < self._forced else self._assumed[edge - self._forced] for edge in way.tolist()]
