"""A depth-first search for an order of few operations, which leaves an order once the state shows that it is hopeless.

    enqueue 1, enqueue 2 and enqueue 2 open, dequeues of 2 and 2 open

In a FIFO queue every order that begins with enqueue 1 is hopeless: 1 is never dequeued, so nothing behind it is. Other
searches find that out only after they have put the 2s behind it in all ways. If many operations are open at once and
values repeat, these are too many. The model says which states are hopeless (`Model.hopeless`), from the operations that
must still happen and those that may.

All orders that are not hopeless are tried: if none is found, there is none. No configuration is tried twice; reads take
effect as soon as they fit; of equal operations the one that ends first takes effect first.

Source: Lowe, Testing for Linearizability, CCPE 29 (2017), for the search. Which orders it leaves is our own; it is
tested against a search through all orders.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from checkers import search_budget
from checkers.kernels.columns import Int64
from checkers.linearizable.model import Hopeless
from checkers.linearizable.search.events import READS
from checkers.linearizable.search.timeline import Problem
from checkers.linearizable.values import NEVER

BETWEEN_LOOKS = 256
"""How many configurations are explored between two looks at the clock."""


class Ended(Enum):
    FOUND = "found"
    NOWHERE = "nowhere"
    """All orders were tried."""
    GIVEN_UP = "given up"


class Foreseen(NamedTuple):
    ended: Ended
    explored: int
    order: tuple[int, ...] = ()
    """FOUND: what took effect, in order."""
    state: Hashable = None
    """FOUND: the state after that."""


class _Configuration(NamedTuple):
    placed: int
    """The operations that took effect, as a bit set."""
    state: Hashable
    must: tuple[int, ...]
    """By kind: how many operations still have to take effect."""
    may: tuple[int, ...]
    """By kind: how many more operations may take effect."""


def foreseen(problem: Problem, *, most: int) -> Foreseen:
    """Search for an order. It is given up after `most` configurations."""
    assert problem.hopeless is not None, "only of objects whose states show what cannot follow"
    return _Foresight(problem, problem.hopeless).search(most)


def first_stuck(problem: Problem, *, most: int) -> tuple[int, Foreseen]:
    """For a problem without an order: the operation up to whose completion there is none, and what was found before it.

    It is the first such operation unless a search was given up. Each search explores at most `most` configurations.
    """
    completing = np.flatnonzero(problem.end != NEVER)
    completing = completing[np.argsort(problem.end[completing])]
    before = Foreseen(Ended.FOUND, 0, (), problem.initial)
    low, high = 0, len(completing) - 1
    while low < high:
        middle = (low + high) // 2
        found = _until(problem, int(problem.end[completing[middle]]), most)
        if found.ended is Ended.NOWHERE:
            high = middle
        else:
            low, before = middle + 1, found
    return int(completing[high]), before


def _until(problem: Problem, time: int, most: int) -> Foreseen:
    """Search for an order up to `time`. Operations that complete later need not take effect, but if they do, they
    return what they returned."""
    reads = problem.does[problem.kind] == READS
    chosen: Int64 = np.flatnonzero((problem.start < time) & ~(reads & (problem.end > time)))
    part = problem.part(chosen, problem.initial)
    found = foreseen(replace(part, end=np.where(part.end > time, NEVER, part.end)), most=most)
    return found._replace(order=tuple(chosen[list(found.order)].tolist()))


class _Foresight:
    def __init__(self, problem: Problem, hopeless: Hopeless) -> None:
        self._hopeless = hopeless
        self._step = problem.transitions.step
        self._start, self._end, self._kind = problem.start.tolist(), problem.end.tolist(), problem.kind.tolist()
        self._reads = (problem.does == READS).tolist()
        self._by_end: list[int] = np.lexsort((problem.start, problem.end)).tolist()
        definite = problem.end != NEVER
        kinds = len(problem.does)
        must = np.bincount(problem.kind[definite], minlength=kinds)
        may = np.bincount(problem.kind[~definite], minlength=kinds)
        self._begin = _Configuration(0, problem.initial, tuple(must.tolist()), tuple(may.tolist()))
        self._definite = sum(1 << n for n in np.flatnonzero(definite).tolist())

    def search(self, most: int) -> Foreseen:
        here = self._begin
        if self._hopeless(here.state, here.must, here.may):
            return Foreseen(Ended.NOWHERE, 1)
        met = {(here.placed, here.state)}
        order: list[int] = []
        tries = [self._followed_by(here)]
        while here.placed & self._definite != self._definite:
            followed = next(tries[-1], None)
            if followed is None:
                tries.pop()
                if not tries:
                    return Foreseen(Ended.NOWHERE, len(met))
                order.pop()
                continue
            operation, here = followed
            if (here.placed, here.state) in met:
                continue
            if len(met) >= most or (len(met) % BETWEEN_LOOKS == 0 and search_budget.is_over()):
                return Foreseen(Ended.GIVEN_UP, len(met))
            met.add((here.placed, here.state))
            order.append(operation)
            tries.append(self._followed_by(here))
        return Foreseen(Ended.FOUND, len(met), tuple(order), here.state)

    def _followed_by(self, before: _Configuration) -> Iterator[tuple[int, _Configuration]]:
        """Operations that may take effect next, each with the configuration that follows, unless that is hopeless. If a
        read fits, it is the only one."""
        first_end = next(self._end[n] for n in self._by_end if not before.placed >> n & 1)
        left = [n for n in self._by_end if self._start[n] < first_end and not before.placed >> n & 1]
        for n in left:
            if self._reads[self._kind[n]] and self._step(before.state, self._kind[n]):
                yield n, self._after(before, n, before.state)
                return
        tried = set()
        for n in left:
            kind = self._kind[n]
            if kind in tried or self._reads[kind]:
                continue
            tried.add(kind)
            for state in self._step(before.state, kind):
                if self._end[n] == NEVER and state == before.state:
                    continue
                after = self._after(before, n, state)
                if not self._hopeless(after.state, after.must, after.may):
                    yield n, after

    def _after(self, before: _Configuration, operation: int, state: Hashable) -> _Configuration:
        must, may, kind = list(before.must), list(before.may), self._kind[operation]
        (may if self._end[operation] == NEVER else must)[kind] -= 1
        return _Configuration(before.placed | 1 << operation, state, tuple(must), tuple(may))
