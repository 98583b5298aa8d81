"""From a problem to one order of its operations, found depth first. That none was found proves nothing."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from checkers import search_budget
from checkers.linearizable.search.configurations import PLACED, STATE, no_rows
from checkers.linearizable.search.depth import ASKS, EXPLORED, FOUND, NOWHERE, SPENT, STEPS, DfsState, descend
from checkers.linearizable.search.events import Present
from checkers.linearizable.search.progress import SearchInput
from checkers.linearizable.search.timeline import Layout, Problem

TOGETHER = (2, 3, 1 << 40)
"""How many operations may take effect before a completion: few in the first try, more in the next ones. An operation
that takes effect without need is not available later."""

MOST_LOOKS = 50_000_000
"""The most open operations that are looked at. Each configuration looks at all that are open, so with thousands of
clients fewer configurations are explored."""

BETWEEN_LOOKS = 1_000
"""How many configurations are explored before it is asked what time it is, and whether kernels are still
interpreted."""


class Descent(NamedTuple):
    """How the search for one order ended."""

    explored: int
    steps: list[int] | None
    """What took effect, in order, as `DfsState.step`; None where no order was found."""
    state: Hashable = None
    """The state after these steps."""


def descent(problem: Problem, of: Layout, *, most: int, elements: int) -> Descent:
    """Search for one order. It is given up after `most` configurations, or when new states have `elements` elements."""
    elements += problem.transitions.elements
    most = min(most, MOST_LOOKS // max(of.slots, 1))
    explored = 0
    for together in TOGETHER:
        found = _descent(problem, of, most, elements, together)
        explored += found.explored
        if found.steps is not None:
            return found._replace(explored=explored)
    return Descent(explored, None)


def _descent(problem: Problem, of: Layout, most: int, elements: int, together: int) -> Descent:
    moves = problem.transitions
    begun = _dive(of, len(problem.start), len(problem.does), moves.number(problem.initial))
    here = begun.here
    present = Present(np.full(of.slots, -1, dtype=np.int64), np.zeros(len(problem.does), dtype=np.int64))
    seen = no_rows(len(begun.next), 64)
    ended = SPENT
    while (ended == ASKS or here[EXPLORED] < most) and moves.elements <= elements and not search_budget.is_over():
        inputs = SearchInput(of.line, moves.moves(), present, of.words)
        ended, seen = descend(inputs, begun, seen, min(most, int(here[EXPLORED]) + BETWEEN_LOOKS), together)
        moves.fill()
        if ended in (FOUND, NOWHERE):
            break
    if ended != FOUND:
        return Descent(int(here[EXPLORED]), None)
    return Descent(int(here[EXPLORED]), begun.step[: here[STEPS]].tolist(), moves.states[int(begun.next[STATE])])


def _dive(of: Layout, operations: int, kinds: int, initial: int) -> DfsState:
    """The search before the first event, in the state with the number `initial`."""
    depth, width = operations + 1, PLACED + 2 * of.words + of.columns
    room = np.zeros(width, dtype=np.int64)
    room[STATE] = initial
    rows = np.empty((depth, width), dtype=np.int64)
    rows[0] = room
    at, choice, target, steps_before, early = (np.zeros(depth, dtype=np.int64) for _ in range(5))
    return DfsState(
        row=rows,
        at=at,
        choice=choice,
        target=target,
        steps_before=steps_before,
        early=early,
        step=np.empty(operations, dtype=np.int64),
        available=np.zeros(len(of.time), dtype=np.int64),
        first_end=np.zeros(kinds, dtype=np.int64),
        here=np.zeros(4, dtype=np.int64),
        next=room.copy(),
    )
