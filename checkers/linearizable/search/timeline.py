"""A problem as the search sees it: events in order, and the places of its operations' bits and counts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.model import Hopeless
from checkers.linearizable.search.configurations import BITS
from checkers.linearizable.search.events import COMPLETED, INVOKED, MAY_HAPPEN, OVER, UNCOUNTED, Timeline
from checkers.linearizable.search.transitions import Transitions
from checkers.linearizable.values import NEVER
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Operations on one object, in the order of their starts. The end of an indefinite one is NEVER."""

    start: Int64
    end: Int64
    kind: Int64
    """By operation: what it does, as a number. Equal operations have the same number."""
    does: Int64
    """By kind: OTHER, READS or OVERWRITES."""
    over: Int64
    """By kind: from when on an indefinite operation of it does not matter any more. At the end of an operation that
    needs it, it still does."""
    initial: Hashable
    transitions: Transitions
    """What the kinds do to states. It is shared with the problem's parts."""
    hopeless: Hopeless | None = None

    def part(self, chosen: Int64, initial: Hashable) -> Problem:
        return replace(self, start=self.start[chosen], end=self.end[chosen], kind=self.kind[chosen], initial=initial)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A timeline, and how wide its configurations are."""

    line: Timeline
    time: Int64
    """The time of each event."""
    slots: int
    words: int
    """How many numbers each bit set over the slots takes."""
    columns: int
    """How many counts of indefinite operations a configuration has."""

    def uncounted(self) -> Layout:
        """The same, but each indefinite operation may take effect any number of times. What is impossible then is also
        impossible with counts."""
        column = np.full_like(self.line.column, UNCOUNTED)
        return replace(self, line=self.line._replace(column=column), columns=0)


def layout(problem: Problem) -> Layout:
    definite = np.flatnonzero(problem.end != NEVER)
    indefinite = np.flatnonzero(problem.end == NEVER)
    kinds = len(problem.does)
    kind = problem.kind[indefinite]
    indefinite = indefinite[problem.start[indefinite] < problem.over[kind]]
    opened = np.full(kinds, NEVER, dtype=np.int64)
    np.minimum.at(opened, problem.kind[indefinite], problem.start[indefinite])
    ever = np.flatnonzero(opened != NEVER)
    slot, slots = places(problem.start[definite], problem.end[definite])
    slot_of = np.full(len(problem.start), -1, dtype=np.int64)
    slot_of[definite] = slot
    order = ever[np.argsort(opened[ever], kind="stable")]
    column = np.full(kinds, UNCOUNTED, dtype=np.int64)
    column[order], columns = places(opened[order], problem.over[order])

    counts = (
        (INVOKED, len(definite)),
        (COMPLETED, len(definite)),
        (MAY_HAPPEN, len(indefinite)),
        (OVER, len(ever)),
    )
    event = np.concatenate([np.full(n, what, dtype=np.int64) for what, n in counts])
    subject = np.concatenate((definite, definite, problem.kind[indefinite], ever)).astype(np.int64)
    time = np.concatenate(
        (problem.start[definite], problem.end[definite], problem.start[indefinite], problem.over[ever])
    )
    # A completion and the OVER that it causes have the same time; the completion comes first.
    order = np.lexsort((event, time))
    line = Timeline(event[order], subject[order], slot_of, problem.kind, problem.end, problem.does, column)
    return Layout(line=line, time=time[order], slots=slots, words=max(1, -(-slots // BITS)), columns=columns)


@compiled
def places(start: Int64, end: Int64) -> tuple[Int64, int]:
    """(the lowest free place for each interval, how many places that takes); intervals are in the order of their
    starts."""
    place = np.empty(len(start), dtype=np.int64)
    busy_until = np.empty(len(start), dtype=np.int64)
    taken = 0
    for i in range(len(start)):
        p = 0
        while p < taken and busy_until[p] >= start[i]:
            p += 1
        if p == taken:
            taken += 1
        busy_until[p] = end[i]
        place[i] = p
    return place, taken
