"""Takes of unknown outcome, for objects that prescribe which element a take gets.

Each of them may have taken an element that was not seen, at any time from its begin on, or nothing. The decision is:
- The object is linearizable if it is so when none of them happened.
- It is not if it is not even linearizable without any unseen element, as if those had been taken at once.
- Otherwise some elements must have been taken in time. For each the object has a time by which it certainly was taken,
  and one that is early enough to disturb no other operation. If by some time more elements must have been taken than
  takes had begun, it is not linearizable. If it is linearizable when the element that is due first gets the take that
  began first, and so on, it is. In all other cases nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int64
from checkers.linearizable.deciders.lifetimes import Lifetimes, Words, free_moments, in_a_row, named, seen_lifetimes
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome, Spans
from checkers.linearizable.values import NEVER


@dataclass(frozen=True)
class Clash:
    """The elements, and perhaps a take that found nothing, that make lifetimes impossible."""

    elements: Int64
    begin: int
    """One of them was there at each moment between `begin` and `end`, in compact time."""
    end: int
    empty_take: int = NO_INDEX


@dataclass(frozen=True)
class Due:
    """When elements that were not seen must have been taken; NEVER if they may stay."""

    soon: Int64
    """A time that is early enough to disturb no other operation."""
    late: Int64
    """The latest possible time."""
    by: Int64
    """What makes it the latest: an element, or -1 - i for the i-th take that found nothing."""

    def and_also(self, other: Due) -> Due:
        """The earlier of both for each element."""
        return Due(
            soon=np.minimum(self.soon, other.soon),
            late=np.minimum(self.late, other.late),
            by=np.where(other.late < self.late, other.by, self.by),
        )


class Rules(Protocol):
    """What an object demands of lifetimes."""

    words: Words

    def clash(self, lifetimes: Lifetimes) -> Clash | None:
        """Why they are impossible, None if they are not."""

    def because(self, spans: Spans, lifetimes: Lifetimes, clash: Clash) -> str: ...

    def due(self, seen: Lifetimes, left: Lifetimes) -> Due:
        """When each element that is `left` is due, if the others, which are possible, were seen."""

    def needed(self, seen: Lifetimes, element: int) -> Int64:
        """The elements that make others due by this one."""

    def order(self, lifetimes: Lifetimes) -> Int64:
        """Positions in the spans of all operations that happened, in their order."""


@dataclass(frozen=True)
class Collection:
    """Decides an object that returns each element once, by the object's rules."""

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
        known = seen_lifetimes(spans, initial, self.rules.words)
        if not isinstance(known, Lifetimes):
            return known
        clash = self.rules.clash(known)
        if clash is None:
            return known
        left = np.flatnonzero(known.taken == NO_INDEX)
        if len(known.takers) == 0 or len(left) == 0:
            return self._contradiction(spans, known, clash)
        seen = known.part(np.flatnonzero(known.taken != NO_INDEX))
        clash = self.rules.clash(seen)
        if clash is not None:
            return self._contradiction(spans, seen, clash)
        due = self.rules.due(seen, known.part(left)).and_also(due_by_empty_takes(seen, known.put_end[left]))
        needed = np.flatnonzero(due.soon != NEVER)
        late = needed[np.argsort(due.late[needed], kind="stable")]
        begun = np.append(known.start[known.takers], np.full(len(late), NEVER))[: len(late)]
        missed = np.flatnonzero(begun > due.late[late])
        if len(missed):
            return self._too_few(spans, known, seen, due, left, late[: missed[0] + 1])
        given = known.with_takes(left[needed[np.argsort(due.soon[needed], kind="stable")]])
        if self.rules.clash(given) is None:
            return given
        return Open(f"the simplest way to say what {self.rules.words.take}s of unknown outcome took fits nowhere")

    def _contradiction(self, spans: Spans, lifetimes: Lifetimes, clash: Clash) -> Contradiction:
        return Contradiction(
            _positions(lifetimes, clash.elements) | ({clash.empty_take} - {NO_INDEX}),
            self.rules.because(spans, lifetimes, clash),
        )

    def _too_few(
        self, spans: Spans, lifetimes: Lifetimes, seen: Lifetimes, due: Due, left: Int64, urgent: Int64
    ) -> Contradiction:
        """More elements had to be taken in time than takes had begun."""
        time = int(due.late[urgent[-1]])
        takers = lifetimes.takers[lifetimes.start[lifetimes.takers] < time]
        operations = _positions(lifetimes, left[urgent]) | set(takers.tolist())
        for by in np.unique(due.by[urgent]).tolist():
            if by >= 0:
                operations |= _positions(seen, self.rules.needed(seen, by))
            else:
                empty_take = int(seen.nothing[-1 - by])
                operations |= _positions(seen, covering(seen, empty_take)) | {empty_take}
        take = self.rules.words.take
        begun = f"only {len(takers)} {take}{'s' if len(takers) > 1 else ''}" if len(takers) else f"no {take}"
        return Contradiction(
            frozenset(operations),
            f"{named(spans, lifetimes, left[urgent])}: nothing shows that these were taken, which must have been "
            f"before {_index(spans, lifetimes, time)}, but by then {begun} of unknown outcome had begun",
        )


def _positions(lifetimes: Lifetimes, elements: Int64) -> frozenset[int]:
    return frozenset({*lifetimes.put[elements].tolist(), *lifetimes.taken[elements].tolist()} - {NO_INDEX})


def _index(spans: Spans, lifetimes: Lifetimes, time: int) -> int:
    """The history index of a compact time at which something begins or ends."""
    ended = np.flatnonzero(lifetimes.end == time)
    return int(spans.end[ended[0]]) if len(ended) else int(spans.start[np.flatnonzero(lifetimes.start == time)[0]])


def due_by_empty_takes(seen: Lifetimes, put_end: Int64) -> Due:
    """When elements are due because of takes that found nothing: what was put before must have been taken by then."""
    moments = free_moments(seen)
    order = np.argsort(moments, kind="stable")
    moments, end = moments[order], seen.end[seen.nothing[order]]
    # From each one on, the first end of all that follow.
    least = np.minimum.accumulate(end[::-1])[::-1]
    last_first = np.where(end == least, np.arange(len(end)), len(end))[::-1]
    ends_first = order[np.minimum.accumulate(last_first)[::-1]]
    at = np.searchsorted(moments, put_end, side="right")
    return Due(
        soon=np.append(moments, NEVER)[at], late=np.append(least, NEVER)[at], by=np.append(-1 - ends_first, NEVER)[at]
    )


def covering(seen: Lifetimes, empty_take: int) -> Int64:
    """The elements because of which this take cannot have found nothing before its moment."""
    at = int(np.flatnonzero(seen.nothing == empty_take)[0])
    everything = np.arange(len(seen.value))
    return in_a_row(seen, int(seen.start[empty_take]), int(free_moments(seen)[at]), everything)


def never_empty(lifetimes: Lifetimes) -> Clash | None:
    """A take found nothing, though something was there all the time."""
    wrong = lifetimes.nothing[free_moments(lifetimes) < 0]
    if len(wrong) == 0:
        return None
    empty_take = int(wrong[np.argmin(lifetimes.end[wrong])])
    begin, end = int(lifetimes.start[empty_take]), int(lifetimes.end[empty_take])
    return Clash(in_a_row(lifetimes, begin, end, np.arange(len(lifetimes.value))), begin, end, empty_take)


def never_empty_because(spans: Spans, lifetimes: Lifetimes, clash: Clash, words: Words) -> str:
    return (
        f"a {words.take} found nothing ({spans.when(clash.empty_take)}), but all that time something was there: "
        f"{named(spans, lifetimes, clash.elements)}"
    )
