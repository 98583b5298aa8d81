"""Takes of unknown outcome, where the object says which element a take gets.

Each of them may have taken something that nobody was told, at any time from its begin on, or nothing. Decided is:
- It is linearizable if it is so with none of them having happened.
- It is not if it is not even so without all that nobody was told, as if that had been taken at once.
- Between, some elements must have been taken in time: for each the object tells a time by which it certainly was,
  and one that is early enough to disturb nobody. If by some time more must have been taken than takes had begun, it is
  not linearizable. If it is linearizable where the element that is due first gets the take that began first, and so
  on, it is. Otherwise nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.deciders.lifetimes import (
    NOBODY,
    Lifetimes,
    Words,
    free_moments,
    in_a_row,
    named,
    told_lifetimes,
)
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome, Spans
from checkers.linearizable.values import NEVER


@dataclass(frozen=True)
class Clash:
    """Why lifetimes are impossible: these elements, and perhaps somebody who was told that nothing is there."""

    elements: Int64
    begin: int
    """Somebody of them was there at each moment between `begin` and `end`, in compact time."""
    end: int
    teller: int = NOBODY


@dataclass(frozen=True)
class Due:
    """By when elements that nobody was told must have been taken; NEVER if they may stay."""

    soon: Int64
    """Then nobody is disturbed."""
    late: Int64
    """Then at the latest."""
    by: Int64
    """Who says so: an element, or -1 - i for the i-th who was told that nothing is there."""

    def and_also(self, other: Due) -> Due:
        """The earlier of both."""
        return Due(
            soon=np.minimum(self.soon, other.soon),
            late=np.minimum(self.late, other.late),
            by=np.where(other.late < self.late, other.by, self.by),
        )


class Rules(Protocol):
    """What an object asks of lifetimes."""

    words: Words

    def clash(self, known: Lifetimes) -> Clash | None:
        """Why they are impossible, None if they are not."""

    def because(self, spans: Spans, known: Lifetimes, clash: Clash) -> str: ...

    def due(self, told: Lifetimes, left: Lifetimes) -> Due:
        """For each element that is `left`, if the others, which are possible, were told."""

    def needed(self, told: Lifetimes, element: int) -> Int64:
        """The elements because of which what is due by this one is due then."""

    def order(self, known: Lifetimes) -> Int64:
        """Positions in the spans of all that happened, as it did."""


@dataclass(frozen=True)
class Collection:
    """Decides an object that gives each element back once, by its rules."""

    rules: Rules

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        settled = self._settled(spans, initial)
        return Ordered() if isinstance(settled, Lifetimes) else settled

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        settled = self._settled(spans, initial)
        if not isinstance(settled, Lifetimes):
            raise ValueError(f"there is no order: {settled.because}")
        return self.rules.order(settled)

    def _settled(self, spans: Spans, initial: tuple[int, ...]) -> Lifetimes | Contradiction | Open:
        known = told_lifetimes(spans, initial, self.rules.words)
        if not isinstance(known, Lifetimes):
            return known
        clash = self.rules.clash(known)
        if clash is None:
            return known
        left = np.flatnonzero(known.taken == NOBODY)
        if len(known.takers) == 0 or len(left) == 0:
            return self._contradiction(spans, known, clash)
        told = known.part(np.flatnonzero(known.taken != NOBODY))
        clash = self.rules.clash(told)
        if clash is not None:
            return self._contradiction(spans, told, clash)
        due = self.rules.due(told, known.part(left)).and_also(due_by_tellers(told, known.put_end[left]))
        needed = np.flatnonzero(due.soon != NEVER)
        late = needed[np.argsort(due.late[needed], kind="stable")]
        begun = np.append(known.start[known.takers], np.full(len(late), NEVER))[: len(late)]
        missed = np.flatnonzero(begun > due.late[late])
        if len(missed):
            return self._too_few(spans, known, told, due, left, late[: missed[0] + 1])
        given = known.given(left[needed[np.argsort(due.soon[needed], kind="stable")]])
        if self.rules.clash(given) is None:
            return given
        return Open(f"the simplest way to say what {self.rules.words.take}s of unknown outcome took fits nowhere")

    def _contradiction(self, spans: Spans, known: Lifetimes, clash: Clash) -> Contradiction:
        return Contradiction(
            _positions(known, clash.elements) | ({clash.teller} - {NOBODY}), self.rules.because(spans, known, clash)
        )

    def _too_few(
        self, spans: Spans, known: Lifetimes, told: Lifetimes, due: Due, left: Int64, urgent: Int64
    ) -> Contradiction:
        """More elements had to be taken in time than takes had begun."""
        time = int(due.late[urgent[-1]])
        takers = known.takers[known.start[known.takers] < time]
        operations = _positions(known, left[urgent]) | set(takers.tolist())
        for by in np.unique(due.by[urgent]).tolist():
            if by >= 0:
                operations |= _positions(told, self.rules.needed(told, by))
            else:
                teller = int(told.nothing[-1 - by])
                operations |= _positions(told, covering(told, teller)) | {teller}
        take = self.rules.words.take
        begun = f"only {len(takers)} {take}{'s' if len(takers) > 1 else ''}" if len(takers) else f"no {take}"
        return Contradiction(
            frozenset(operations),
            f"{named(spans, known, left[urgent])}: nobody was told that these were taken, which must have been before "
            f"{_index(spans, known, time)}, but by then {begun} of unknown outcome had begun",
        )


def _positions(known: Lifetimes, elements: Int64) -> frozenset[int]:
    return frozenset({*known.put[elements].tolist(), *known.taken[elements].tolist()} - {NOBODY})


def _index(spans: Spans, known: Lifetimes, time: int) -> int:
    """The history index of a compact time at which something begins or ends."""
    ended = np.flatnonzero(known.end == time)
    return int(spans.end[ended[0]]) if len(ended) else int(spans.start[np.flatnonzero(known.start == time)[0]])


def due_by_tellers(told: Lifetimes, put_end: Int64) -> Due:
    """What was put before somebody could be told that nothing is there must have been taken until then."""
    moments = free_moments(told)
    order = np.argsort(moments, kind="stable")
    moments, end = moments[order], told.end[told.nothing[order]]
    # Of all from each one on, the one that ends first.
    least = np.minimum.accumulate(end[::-1])[::-1]
    last_first = np.where(end == least, np.arange(len(end)), len(end))[::-1]
    ends_first = order[np.minimum.accumulate(last_first)[::-1]]
    at = np.searchsorted(moments, put_end, side="right")
    return Due(
        soon=np.append(moments, NEVER)[at], late=np.append(least, NEVER)[at], by=np.append(-1 - ends_first, NEVER)[at]
    )


def covering(told: Lifetimes, teller: int) -> Int64:
    """Elements because of which this one cannot have been told before its moment that nothing is there."""
    at = int(np.flatnonzero(told.nothing == teller)[0])
    everything = np.arange(len(told.value))
    return in_a_row(told, int(told.start[teller]), int(free_moments(told)[at]), everything)


def never_empty(known: Lifetimes) -> Clash | None:
    """Somebody was told that nothing is there, though there was something all the time."""
    wrong = known.nothing[free_moments(known) < 0]
    if len(wrong) == 0:
        return None
    teller = int(wrong[np.argmin(known.end[wrong])])
    begin, end = int(known.start[teller]), int(known.end[teller])
    return Clash(in_a_row(known, begin, end, np.arange(len(known.value))), begin, end, teller)


def never_empty_because(spans: Spans, known: Lifetimes, clash: Clash, words: Words) -> str:
    return (
        f"a {words.take} found nothing ({spans.when(clash.teller)}), but all that time something was there: "
        f"{named(spans, known, clash.elements)}"
    )
