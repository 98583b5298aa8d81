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

The number of configurations is bounded, and so is what they occupy; an object that needs more is undecided, and how
far it came is told. The bounds count steps and cells, not seconds, so that every machine decides alike.

Source: Wing and Gong, Testing and Verifying Concurrent Objects, JPDC 17 (1993); Lowe, Testing for
Linearizability, CCPE 29 (2017). The free overwrites are ours, and held against a search through all orders.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int64
from checkers.kernels.compiled import compiled
from checkers.linearizable.kernel import (
    ASKED,
    COMPLETED,
    DONE,
    INVOKED,
    LIMIT,
    MAY_HAPPEN,
    MISSING,
    NODE,
    OVER,
    OVERWRITES,
    SLOTS,
    STATE,
    STUCK,
    USED,
    advance,
    find,
)
from checkers.linearizable.operations import NEVER

LINEARIZABLE, NOT_LINEARIZABLE, UNDECIDED = range(3)

CELLS = 50_000_000
"""Configurations of one object may have so many numbers at once: 400 MB."""

ELEMENTS = 4_000_000
"""The states of one object that are looked at may have so many elements together; each counts as one as well."""

Step = Callable[[Hashable, int], Sequence[Hashable]]
"""The states that an operation of this kind may lead to; none if it cannot happen in this state."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Operations on one object, in the order of their starts; the end is NEVER if indefinite."""

    start: Int64
    end: Int64
    kind: Int64
    """What it does, as a number; equal operations have the same."""
    does: Int64
    """By kind: OTHER, READS or OVERWRITES."""
    over: Int64
    """By kind: when an indefinite operation of it does not matter any more. It never ends at the end of another one
    that needs it, but behind it."""
    initial: Hashable
    step: Step

    def part(self, chosen: Int64, initial: Hashable) -> Problem:
        return Problem(
            start=self.start[chosen],
            end=self.end[chosen],
            kind=self.kind[chosen],
            does=self.does,
            over=self.over,
            initial=initial,
            step=self.step,
        )


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How the search ended."""

    outcome: int
    stuck_at: int
    """NOT_LINEARIZABLE: the operation that fits nowhere. UNDECIDED: the one that was not decided any more, or -1."""
    possible: tuple[Hashable, ...]
    """States that the object could have been in before it completed, or at the end."""
    explored: int
    reason: str = ""
    orders: tuple[tuple[int, ...], ...] = ()
    """If asked for: LINEARIZABLE: one order of all operations that took effect. NOT_LINEARIZABLE: for each of the
    possible states the order that led to it."""
    quiet_since: int = 0
    """Time before which everything had completed, as late as possible."""


class Transitions:
    """States by number, and what operations do to them, found out when somebody needs to know."""

    def __init__(self, initial: Hashable, kinds: int, step: Step) -> None:
        self.states: list[Hashable] = [initial]
        self.table = np.full((64, 3), -1, dtype=np.int64)
        self.targets = np.zeros(64, dtype=np.int64)
        self._number = {initial: 0}
        self._kinds = max(kinds, 1)
        self._step = step
        self.elements = 0
        self._entries = 0
        self._used = 0

    def fill(self, entries: Int64) -> None:
        for entry in sorted(set(entries.tolist())):
            state, kind = divmod(entry, self._kinds)
            numbers = [self._numbered(target) for target in self._step(self.states[state], kind)]
            while self._used + len(numbers) > len(self.targets):
                self.targets = np.concatenate((self.targets, np.zeros_like(self.targets)))
            self.targets[self._used : self._used + len(numbers)] = numbers
            if 2 * self._entries >= len(self.table):
                self.table = _rehashed(self.table)
            self.table[find(self.table, entry)] = (entry, self._used, len(numbers))
            self._used += len(numbers)
            self._entries += 1

    def _numbered(self, state: Hashable) -> int:
        number = self._number.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.elements += 1 + (len(state) if isinstance(state, Sized) else 0)
        return number


@compiled
def _rehashed(table: Int64) -> Int64:
    grown = np.full((4 * len(table), 3), -1, dtype=np.int64)
    for i in range(len(table)):
        if table[i, 0] >= 0:
            grown[find(grown, table[i, 0])] = table[i]
    return grown


@compiled
def places(start: Int64, end: Int64) -> tuple[Int64, int]:
    """The lowest free place for each interval, in ascending order of their starts, and how many places that takes."""
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


def decide(problem: Problem, *, limit: int) -> Decision:
    """Whether the operations can be put in an order; at most `limit` configurations are explored."""
    return _decide(problem, limit, np.empty((0, 2), dtype=np.int64))


def decide_with_orders(problem: Problem, *, limit: int) -> Decision:
    """As `decide`, with the orders that prove it; this takes more memory."""
    trail = np.full((1_024, 2), -1, dtype=np.int64)
    return _decide(problem, limit, trail)


@dataclass(frozen=True)
class _Events:
    """What happens, in order: event and whom it is about (an operation, or a kind), and its time."""

    event: Int64
    subject: Int64
    time: Int64


def _decide(problem: Problem, limit: int, trail: Int64) -> Decision:
    definite = np.flatnonzero(problem.end != NEVER)
    indefinite = np.flatnonzero(problem.end == NEVER)
    kinds = len(problem.does)
    kind = problem.kind[indefinite]
    indefinite = indefinite[problem.start[indefinite] < problem.over[kind]]
    opened = np.full(kinds, NEVER, dtype=np.int64)
    np.minimum.at(opened, problem.kind[indefinite], problem.start[indefinite])
    ever = np.flatnonzero(opened != NEVER)
    slot, slots = places(problem.start[definite], problem.end[definite])
    if slots > SLOTS:
        reason = f"{slots} operations were open at once, more than {SLOTS}"
        return Decision(outcome=UNDECIDED, stuck_at=-1, possible=(), explored=0, reason=reason)
    slot_of = np.full(len(problem.start), -1, dtype=np.int64)
    slot_of[definite] = slot
    order = ever[np.argsort(opened[ever], kind="stable")]
    column = np.zeros(kinds, dtype=np.int64)
    column[order], columns = places(opened[order], problem.over[order])
    events = _events(problem, definite, indefinite, ever)

    width = USED + columns
    bound = min(limit, CELLS // width)
    transitions = Transitions(problem.initial, kinds, problem.step)
    missing = np.empty(ASKED, dtype=np.int64)
    open_in = np.full(SLOTS, -1, dtype=np.int64)
    available = np.zeros(kinds, dtype=np.int64)
    current = np.zeros((1, width), dtype=np.int64)
    ended, at, explored, nodes, quiet = MISSING, 0, 0, min(len(trail), 1), 0
    while ended == MISSING and transitions.elements <= ELEMENTS:
        ended, at, current, explored, asked, trail, nodes, quiet = advance(
            events.event,
            events.subject,
            slot_of,
            problem.kind,
            problem.end,
            problem.does,
            column,
            transitions.table,
            transitions.targets,
            missing,
            open_in,
            available,
            at,
            current,
            explored,
            bound,
            trail,
            nodes,
            quiet,
        )
        transitions.fill(missing[:asked])
    reasons = {
        LIMIT: f"{bound} configurations were not enough",
        MISSING: f"its states have more than {ELEMENTS} elements together",
    }
    heads = {int(row[STATE]): int(row[NODE]) for row in current[::-1]}
    numbers = sorted(heads)
    told = numbers[:1] if ended == DONE else numbers
    return Decision(
        outcome={DONE: LINEARIZABLE, STUCK: NOT_LINEARIZABLE}.get(ended, UNDECIDED),
        stuck_at=int(events.subject[at]) if ended != DONE else -1,
        possible=tuple(transitions.states[number] for number in numbers),
        explored=explored,
        reason=reasons.get(ended, ""),
        orders=tuple(_order(problem, trail, heads[number]) for number in told) if len(trail) else (),
        quiet_since=int(events.time[quiet]) if len(events.time) else 0,
    )


def _events(problem: Problem, definite: Int64, indefinite: Int64, ever: Int64) -> _Events:
    kinds = problem.kind[indefinite]
    counts = (
        (INVOKED, len(definite)),
        (COMPLETED, len(definite)),
        (MAY_HAPPEN, len(indefinite)),
        (OVER, len(ever)),
    )
    event = np.concatenate([np.full(n, what, dtype=np.int64) for what, n in counts])
    subject = np.concatenate((definite, definite, kinds, ever)).astype(np.int64)
    time = np.concatenate(
        (problem.start[definite], problem.end[definite], problem.start[indefinite], problem.over[ever])
    )
    # A completion and the OVER that hangs on it have the same time; the completion comes first.
    order = np.lexsort((event, time))
    return _Events(event[order], subject[order], time[order])


def _order(problem: Problem, trail: Int64, node: int) -> tuple[int, ...]:
    """The operations that led to a node; those that took effect unseen are put where they did."""
    steps: list[int] = []
    while node > 0:
        steps.append(int(trail[node, 1]))
        node = int(trail[node, 0])
    steps.reverse()
    waiting: dict[int, list[int]] = {}
    for number in np.flatnonzero(problem.end == NEVER)[::-1].tolist():
        waiting.setdefault(int(problem.kind[number]), []).append(number)
    placed = [step if step >= 0 else waiting[-1 - step].pop() for step in steps]
    return tuple(_with_unseen(problem, placed))


def _with_unseen(problem: Problem, placed: list[int]) -> list[int]:
    """Put each overwrite that is left right before an overwrite that took effect while it was open.

    An order is found when it exists at all: everything before the place began before its end, everything behind it
    ends after its start.
    """
    done = set(placed)
    begun = np.maximum.accumulate(problem.start[placed]) if placed else np.empty(0, dtype=np.int64)
    must_end = np.minimum.accumulate(problem.end[placed][::-1])[::-1] if placed else begun
    is_place = problem.does[problem.kind[placed]] == OVERWRITES if placed else begun
    unseen: dict[int, list[int]] = {}
    left = np.flatnonzero((problem.end != NEVER) & (problem.does[problem.kind] == OVERWRITES))
    for number in left.tolist():
        if number in done:
            continue
        # must_end ascends: the first place behind all that ended before this one began.
        first = int(np.searchsorted(must_end, problem.start[number]))
        at = next(
            (i for i in range(first, len(placed)) if is_place[i] and (i == 0 or begun[i - 1] < problem.end[number])),
            -1,
        )
        if at >= 0:
            unseen.setdefault(at, []).append(number)
    result = []
    for i, number in enumerate(placed):
        result += sorted(unseen.get(i, ()), key=lambda one: int(problem.end[one]))
        result.append(number)
    return result
