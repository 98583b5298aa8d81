"""Decides one object of any model by search: all orders, each operation as late as possible, no configuration twice.

The search goes over invocations and completions in the order of time. When an operation completes, it must have taken
effect in each configuration that survives. So from each configuration that lacks it, all ways are tried to let open
operations take effect until it has (just-in-time linearization). What keeps the sets of configurations small:
- A read that may take effect does so at once: it changes nothing, so waiting wins nothing.
- Of equal open operations the one that ends first takes effect first: they are interchangeable.
- Right before an overwrite takes effect, every open overwrite may have done so unseen. It is free from then on:
  it may still be used, but need not be, so a configuration that has it free makes one superfluous that used it.
- Indefinite operations never complete. Equal ones are only counted; a configuration that has used fewer of them, and
  is equal otherwise, makes the other superfluous. One that no later operation could need is left out.
Between operations nothing is open, and only states are left, so each operation of a long history is as cheap as one of
a short history.

If the sets still grow, two searches take turns, each turn longer than the one before, until one of them answers:
- A depth-first search for a single order (`depth`): where there are many orders, it soon finds one. If there are few
  operations, it comes before anything else. After some turns it is given up.
- A search through all configurations. Before it, one that does not count indefinite operations is tried: each of them
  may take effect any number of times, and what is impossible even so is impossible.
If there are few operations, and states of the object show what cannot follow, a search that skips hopeless orders
(`foresight`) is tried before the first turn.

The number of configurations is bounded, and so is their memory. An object that needs more is undecided, and it is
reported how far the search got. The bounds count steps and cells, not seconds, so every machine gives the same answer,
unless there is a deadline (`checkers.search_budget`).

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
"""How a search ended that ran out of time. The other ways are those in which `advance` ends."""

BETWEEN_LOOKS = 50_000
"""How many configurations a search with a deadline explores before it looks at the clock. The number is doubled each
time that it was not enough for one event."""

BETWEEN_WORDS = 1_000_000
"""How many configurations a search without a deadline explores before it reports its progress."""

FIRST_LOOK = 250
"""How many configurations any search explores first; the number is doubled each time, up to the two above. It begins
low because a search also asks at these moments whether interpreting its kernel still pays."""

CELLS = 50_000_000
"""The most numbers in the configurations of one object that are held at once: 400 MB."""

ELEMENTS = 4_000_000
"""The most elements in all states of one object that a search looks at; each state counts as one more."""

AT_FIRST = 2_000
"""How many configurations are explored side by side before the first search for a single order."""

TURN = 8_000
"""How many configurations the search through all of them explores in its first turn. Each turn doubles the number."""

FEW_OPERATIONS, FEW_STEPS = 256, 4
"""If an object has at most FEW_OPERATIONS, a single order is sought before anything else, and FEW_STEPS configurations
are explored for each operation."""

DIVE_STEPS, LEAST_OPERATIONS = 12, 512
"""The search for a single order explores DIVE_STEPS configurations for each operation in its first turn, but counts at
least LEAST_OPERATIONS. Each turn doubles the number."""

DIVE_MOST = 50_000
"""The search for a single order is repeated in later turns only for few operations, and only up to this number of
configurations."""

DIVE_SHARE = 4
"""The search for a single order may take one in DIVE_SHARE of the limits, in addition to them."""

FORESEEN, FORESEEN_SHARE = 20_000, 60
"""With foresight at most FORESEEN configurations are explored, and at most one in FORESEEN_SHARE of the limit, in
addition to it: each of them takes much longer than others."""

EVIDENCE_FACTOR = 8
"""At most this many times the configurations that the decision took are explored to show why there is no order."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How the search ended."""

    outcome: int
    stuck_at: int
    """NOT_LINEARIZABLE: the operation that fits nowhere. UNDECIDED: the one at which the search was given up, or -1."""
    possible: tuple[Hashable, ...]
    """NOT_LINEARIZABLE: states that the object could have been in before that operation completed; none if they are not
    known. Otherwise states in which the object could have ended, or could have been when the search was given up."""
    explored: int
    reason: str = ""
    fits_until: int = 0
    """UNDECIDED: the operations that had completed before this moment have an order."""
    orders: tuple[tuple[int, ...], ...] = ()
    """If orders were asked for: LINEARIZABLE: one order of all operations that took effect. NOT_LINEARIZABLE: for each
    possible state an order that led to it."""


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
        # This finds an order in milliseconds, even if the kernel is interpreted.
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
                # Without counts, some of the states are ones that the object cannot have been in.
                return replace(uncounted.decision(ended), possible=())
            uncounted = uncounted if ended == LIMIT else None
        ended = search.go_on(effort=effort)
        if ended != LIMIT or search.explored > limit:
            return search.decision(ended)
        steps, effort = 2 * steps, 2 * effort


def approaching(problem: Problem, decision: Decision, *, limit: int) -> Iterator[tuple[int, tuple[Hashable, ...]]]:
    """Moments before an operation got stuck, ever further away, and the states in which the object can have been then.

    A moment is the time of an event, and the states are those before it; open operations may have taken effect or not.
    There may be more states than are possible, but never fewer. Moments are left out that take more than `limit`
    configurations, or many more than the decision took.
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
        """How many configurations were explored depth first, in addition to those that the limit is for."""
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
        """The search from here on, as if each indefinite operation could take effect any number of times."""
        other = _Search(self._problem, self._layout.uncounted(), self._limit, self._trail)
        width = other.here.current.shape[1]
        current = np.ascontiguousarray(self.here.current[:, :width])
        present = Present(*(column.copy() for column in self.here.present))
        other.here = replace(self.here, current=current, present=present)
        return other

    def beside(self, counted: _Search, effort: int) -> int:
        """Go on, with what is explored charged to the search that counts. Returns how it ended."""
        self.explored, self._dived, self._most_elements = counted.explored, counted._dived, counted._most_elements
        ended = self.go_on(effort=effort)
        counted.explored = self.explored
        return ended

    @property
    def time(self) -> int:
        """The time of the next event."""
        return int(self._layout.time[self.here.at])

    @property
    def states(self) -> tuple[Hashable, ...]:
        numbers = np.unique(self.here.current[:, STATE]).tolist()
        return tuple(self._transitions.states[number] for number in numbers)

    def completion(self, operation: int) -> int:
        """The position of the event at which the operation completes."""
        line = self._layout.line
        return int(np.flatnonzero((line.event == COMPLETED) & (line.subject == operation))[0])

    def go_on(self, *, until: int = NEVER, effort: int = NEVER) -> int:
        """Go on up to the event `until`, or until `effort` configurations were explored. Returns how it ended."""
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
                # It goes on from the event at which it stopped; what it had explored of that event is not counted.
                grows = reached.at == begun.at or looks_after < between
                ended, looks_after = MISSING, 2 * looks_after if grows else between
                reached = reached._replace(explored=reached.settled)
        self.explored, self._trail = reached.explored, reached.trail.step
        self.here = _Place(reached.at, reached.current, present, int(reached.trail.size[0]))
        self._furthest = max(self._furthest, reached.at)
        return ended

    def dive(self, most: int) -> Decision | None:
        """Search for a single order: LINEARIZABLE, or None if it found none."""
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
        """Search with foresight: None if it was given up, or if the model does not say what is hopeless."""
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
        # For a history without an order, this is one example of a state, not all that were possible by then.
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
