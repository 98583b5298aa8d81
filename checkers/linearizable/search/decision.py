"""One object decided by search, whatever its model: all orders, as late as possible, no configuration twice.

Time runs over invocations and completions; when an operation completes, it must have taken effect in each
configuration that survives, so from each one that lacks it all ways are tried to let open operations take
effect until it has (just-in-time linearization). What keeps the sets of configurations small:
- A read that may take effect does so at once: it changes nothing, so waiting wins nothing.
- Of equal open operations the one that ends first takes effect first: they are interchangeable.
- Right before an overwrite takes effect, every open overwrite may have done so unseen. It is free from then on:
  it may still be used, but need not be, so a configuration that has it free makes one superfluous that used it.
- Indefinite operations never complete. Equal ones are only counted; a configuration that has used fewer of them, and
  is equal otherwise, makes the other superfluous. One that no later operation could need is left out.
Between operations nothing is open, and only states are left: long histories are as cheap as short ones.

Where the sets grow all the same, two searches take turns, each longer than the one before, until one of them answers:
- One order is sought by itself, depth first (`depth`): where there are many, one is found soon. Of few operations that
  is done before anything else. After some turns it is not sought any more.
- All configurations are followed further. Before they are, every indefinite operation may take effect again and again:
  no count is kept of them, and what is impossible even so is impossible.
Of few operations on an object whose states show what cannot follow, all orders are tried that are not hopeless
(`foresight`), before the first turn.

The number of configurations is bounded, and so is what they occupy; an object that needs more is undecided, and how
far it came is reported. The bounds count steps and cells, not seconds, so that every machine decides alike; unless
a moment is given by which an answer is wanted (`checkers.search_budget`).

Source: Wing and Gong, Testing and Verifying Concurrent Objects, JPDC 17 (1993); Lowe, Testing for
Linearizability, CCPE 29 (2017). The free overwrites are ours, and held against a search through all orders.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from checkers import search_budget
from checkers.kernels.columns import Int64
from checkers.linearizable.search.configurations import NODE, PLACED, STATE, Trail
from checkers.linearizable.search.descent import descent
from checkers.linearizable.search.events import COMPLETED, Present
from checkers.linearizable.search.foresight import Ended, first_stuck, foreseen
from checkers.linearizable.search.kernel import (
    DONE,
    FULL,
    LIMIT,
    MISSING,
    STUCK,
    advance,
)
from checkers.linearizable.search.orders import order_of_trail, placed
from checkers.linearizable.search.progress import Allowance, Reached, SearchInput
from checkers.linearizable.search.timeline import Layout, Problem, layout
from checkers.linearizable.values import NEVER

__all__ = ["Decision", "Problem", "decide", "decide_with_orders"]

LINEARIZABLE, NOT_LINEARIZABLE, UNDECIDED = range(3)

TIME = -1
"""How a search ended that ran out of time; beside how `advance` ends."""

BETWEEN_LOOKS = 50_000
"""So many configurations are explored before a search that has a deadline looks at the clock; twice as many each time
that they were not enough for one event."""

BETWEEN_WORDS = 1_000_000
"""And so many before one that has none says how far it is."""

FIRST_LOOK = 250
"""But at first so few, and twice as many each time, up to these: as long as kernels are interpreted, whether that still
pays is asked where a search looks up."""

CELLS = 50_000_000
"""Configurations of one object may have so many numbers at once: 400 MB."""

ELEMENTS = 4_000_000
"""The states of one object that a search looks at may have so many elements together; each counts as one as well."""

AT_FIRST = 2_000
"""So many configurations are explored side by side before one order is sought."""

TURN = 8_000
"""So many are explored in the first turn of both, and twice as many in the next one."""

FEW_OPERATIONS, FEW_STEPS = 256, 4
"""Of at most so many operations one order is sought first of all, for so many configurations an operation."""

DIVE_STEPS, LEAST_OPERATIONS = 12, 512
"""In its first turn a search for one order explores so many configurations an operation, as if there were at least so
many operations, and twice as many in the next turn."""

DIVE_MOST = 50_000
"""Only of few operations one order is sought in later turns, too, and there for at most so many configurations."""

DIVE_SHARE = 4
"""But for at most so small a part of the limits, beside them."""

FORESEEN, FORESEEN_SHARE = 20_000, 60
"""So many configurations, and at most so small a part of the limit, are explored with foresight, beside the limit: each
takes much longer than others."""

EVIDENCE_FACTOR = 8
"""To show why there is no order, so many times the configurations are explored that it took to find that out."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How the search ended."""

    outcome: int
    stuck_at: int
    """NOT_LINEARIZABLE: the operation that fits nowhere. UNDECIDED: the one that was not decided any more, or -1."""
    possible: tuple[Hashable, ...]
    """NOT_LINEARIZABLE: states that the object could have been in before it completed; none if they are not known.
    Otherwise states in which it could have ended, or could have been when the search was given up."""
    explored: int
    reason: str = ""
    fits_until: int = 0
    """UNDECIDED: what had completed before this moment has an order."""
    orders: tuple[tuple[int, ...], ...] = ()
    """If asked for: LINEARIZABLE: one order of all operations that took effect. NOT_LINEARIZABLE: for each of the
    possible states the order that led to it."""


def decide(problem: Problem, *, limit: int) -> Decision:
    """Whether the operations can be put in an order; at most `limit` configurations are explored."""
    return _decide(problem, limit, np.empty((0, 2), dtype=np.int64))


def decide_with_orders(problem: Problem, *, limit: int) -> Decision:
    """As `decide`, with the orders that prove it; this takes more memory, and more time where there is no order."""
    return _decide(problem, limit, np.full((1_024, 2), -1, dtype=np.int64))


def _decide(problem: Problem, limit: int, trail: Int64) -> Decision:
    search = _Search(problem, layout(problem), limit, trail)
    operations = len(problem.start)
    if operations <= FEW_OPERATIONS:
        # Of these one order is found in milliseconds, also by interpreting the search for it.
        found = search.dive(FEW_STEPS * operations)
        if found is not None:
            return found
    ended = search.go_on(effort=AT_FIRST)
    if ended != LIMIT or search.explored > limit:
        return search.decision(ended)
    found = search.foresee() if operations <= FEW_OPERATIONS else None
    if found is not None:
        return found
    uncounted = search.without_counts() if search.counts and not len(trail) else None
    steps, effort = DIVE_STEPS * max(operations, LEAST_OPERATIONS), TURN
    while True:
        if effort == TURN or (operations <= FEW_OPERATIONS and steps <= DIVE_MOST):
            found = search.dive(steps)
            if found is not None:
                return found
        if uncounted is not None:
            ended = uncounted.beside(search, 2 * effort)
            if ended == STUCK:
                # Without counts there are states that the object cannot have been in.
                return replace(uncounted.decision(ended), possible=())
            uncounted = uncounted if ended == LIMIT else None
        ended = search.go_on(effort=effort)
        if ended != LIMIT or search.explored > limit:
            return search.decision(ended)
        steps, effort = 2 * steps, 2 * effort


def approaching(problem: Problem, decision: Decision, *, limit: int) -> Iterator[tuple[int, tuple[Hashable, ...]]]:
    """Moments before an operation got stuck, ever further away, and the states in which the object can have been then.

    A moment is the time of an event, and the states are those before it; what is open may have taken effect or not.
    There may be more states than are possible, but never less. None that takes more than `limit` configurations, or
    much more than the decision took.
    """
    effort = min(limit, EVIDENCE_FACTOR * decision.explored)
    search = _Search(problem, layout(problem), effort, np.empty((0, 2), dtype=np.int64))
    if search.counts:
        search = search.without_counts()
    stuck = search.completion(decision.stuck_at)
    found = []
    for distance in 2 ** np.arange(int(stuck).bit_length())[::-1]:
        if search.go_on(until=stuck - int(distance)) != DONE:
            break
        found.append((search.time - 1, search.states))
    yield from reversed(found)


@dataclass(frozen=True)
class _Place:
    """How far a search is, and all that it needs to go on from there."""

    at: int
    current: Int64
    present: Present
    nodes: int


class _Search:
    def __init__(self, problem: Problem, of: Layout, limit: int, trail: Int64) -> None:
        self._problem = problem
        self._layout = of
        self._limit = limit
        self._trail = trail
        self._transitions = problem.transitions
        self._most_elements = problem.transitions.elements + ELEMENTS
        self._furthest = 0
        self._dived = 0
        """Configurations that were explored depth first, beside those that the limit is for."""
        width = PLACED + 2 * of.words + of.columns
        self.room = max(CELLS // width, 1)
        self.explored = 0
        present = Present(np.full(of.slots, -1, dtype=np.int64), np.zeros(len(problem.does), dtype=np.int64))
        begin = np.zeros((1, width), dtype=np.int64)
        begin[0, STATE] = problem.transitions.number(problem.initial)
        self.here = _Place(0, begin, present, min(len(trail), 1))

    @property
    def counts(self) -> bool:
        return self._layout.columns > 0

    def without_counts(self) -> _Search:
        """The search from here on, as if there were no end of the indefinite operations."""
        other = _Search(self._problem, self._layout.uncounted(), self._limit, self._trail)
        width = other.here.current.shape[1]
        current = np.ascontiguousarray(self.here.current[:, :width])
        present = Present(*(column.copy() for column in self.here.present))
        other.here = replace(self.here, current=current, present=present)
        return other

    def beside(self, counted: _Search, effort: int) -> int:
        """Go on at the expense of the search that counts. Returns how it ended."""
        self.explored, self._dived, self._most_elements = counted.explored, counted._dived, counted._most_elements
        ended = self.go_on(effort=effort)
        counted.explored = self.explored
        return ended

    @property
    def time(self) -> int:
        """Of the next event."""
        return int(self._layout.time[self.here.at])

    @property
    def states(self) -> tuple[Hashable, ...]:
        numbers = np.unique(self.here.current[:, STATE]).tolist()
        return tuple(self._transitions.states[number] for number in numbers)

    def completion(self, operation: int) -> int:
        """Position of the event."""
        line = self._layout.line
        return int(np.flatnonzero((line.event == COMPLETED) & (line.subject == operation))[0])

    def go_on(self, *, until: int = NEVER, effort: int = NEVER) -> int:
        """How it ended, before the event `until`, or after so many configurations as the effort allows."""
        present = self.here.present
        limit = min(self._limit, self.explored + min(effort, self._limit))
        until = min(until, len(self._layout.time))
        reached = Reached(
            self.here.at,
            self.here.current,
            self.explored,
            Trail(self._trail, np.array([self.here.nodes])),
            self.explored,
        )
        ended = MISSING
        between, looks_after = BETWEEN_LOOKS if search_budget.is_bounded() else BETWEEN_WORDS, FIRST_LOOK
        while ended == MISSING and self._transitions.elements <= self._most_elements:
            if search_budget.is_over() and reached.at < until:
                ended = TIME
                break
            inputs = SearchInput(self._layout.line, self._transitions.moves(), present, self._layout.words)
            allowance = Allowance(min(limit, reached.explored + looks_after), self.room)
            begun = reached
            ended, reached = advance(inputs, allowance, until, reached)
            self._transitions.fill()
            if ended == LIMIT and allowance.limit < limit:
                search_budget.say(partial(self._words, reached))
                # It goes on with the event at which it looked; what it had explored of it does not count.
                grows = reached.at == begun.at or looks_after < between
                ended, looks_after = MISSING, 2 * looks_after if grows else between
                reached = reached._replace(explored=reached.settled)
        self.explored, self._trail = reached.explored, reached.trail.step
        self.here = _Place(reached.at, reached.current, present, int(reached.trail.size[0]))
        self._furthest = max(self._furthest, reached.at)
        return ended

    def dive(self, most: int) -> Decision | None:
        """LINEARIZABLE if one order was found."""
        before = self._transitions.elements
        found = descent(
            self._problem, self._layout, most=min(most, self._limit // DIVE_SHARE), elements=ELEMENTS // DIVE_SHARE
        )
        self._dived += found.explored
        self._most_elements += self._transitions.elements - before
        if found.steps is None:
            return None
        return Decision(
            outcome=LINEARIZABLE,
            stuck_at=-1,
            possible=(found.state,),
            explored=self.explored + self._dived,
            fits_until=NEVER,
            orders=(tuple(placed(self._problem, found.steps)),) if len(self._trail) else (),
        )

    def foresee(self) -> Decision | None:
        """None if it was given up, or nothing is known of what cannot follow."""
        problem, most = self._problem, min(FORESEEN, self._limit // FORESEEN_SHARE)
        if problem.hopeless is None:
            return None
        found = foreseen(problem, most=most)
        self._dived += found.explored
        if found.ended is Ended.GIVEN_UP:
            return None
        stuck, ended = -1, NEVER
        if found.ended is Ended.NOWHERE:
            stuck, found = first_stuck(problem, most=min(most, AT_FIRST + EVIDENCE_FACTOR * found.explored))
            ended = int(problem.end[stuck])
        is_linearizable = stuck < 0
        # Of a history without an order, one of several states by then is an example, and not all that were possible.
        is_told = found.ended is Ended.FOUND and (is_linearizable or len(self._trail) > 0)
        return Decision(
            outcome=LINEARIZABLE if is_linearizable else NOT_LINEARIZABLE,
            stuck_at=stuck,
            possible=(found.state,) if is_told else (),
            explored=self.explored + self._dived,
            fits_until=ended,
            orders=(found.order,) if is_told and len(self._trail) else (),
        )

    def _words(self, reached: Reached) -> str:
        events, left = len(self._layout.time), len(reached.current)
        return f"{reached.explored:,} configurations, {left:,} left after {reached.at:,} of {events:,} events"

    def decision(self, ended: int) -> Decision:
        reasons = {
            LIMIT: f"{self._limit} configurations side by side were not enough",
            FULL: f"more than {self.room} configurations are too many at once",
            TIME: "there was no time left",
            MISSING: f"its states have more than {ELEMENTS} elements together",
        }
        at = {DONE: -1, STUCK: self.here.at}.get(ended, self._furthest)
        heads = {int(row[STATE]): int(row[NODE]) for row in self.here.current[::-1]}
        numbers = sorted(heads)
        chosen = numbers[:1] if ended == DONE else numbers
        return Decision(
            outcome={DONE: LINEARIZABLE, STUCK: NOT_LINEARIZABLE}.get(ended, UNDECIDED),
            stuck_at=int(self._layout.line.subject[at]) if at >= 0 else -1,
            possible=self.states,
            explored=self.explored + self._dived,
            fits_until=int(self._layout.time[at]) if at >= 0 else NEVER,
            reason=reasons.get(ended, ""),
            orders=tuple(order_of_trail(self._problem, self._trail, heads[number]) for number in chosen)
            if len(self._trail)
            else (),
        )
