"""From the trail of the search to an order of operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.search.events import OVERWRITES
from checkers.linearizable.search.timeline import Problem
from checkers.linearizable.values import NEVER


def order_of_trail(problem: Problem, trail: Int64, node: int) -> tuple[int, ...]:
    """The operations that led to a node, in order; those that took effect unseen are put where they did so."""
    steps: list[int] = []
    while node > 0:
        steps.append(int(trail[node, 1]))
        node = int(trail[node, 0])
    steps.reverse()
    return tuple(_with_unseen(problem, placed(problem, steps)))


def placed(problem: Problem, steps: Sequence[int]) -> list[int]:
    """The operations of steps, where -1 - kind stands for the next one of equal indefinite operations."""
    waiting: dict[int, list[int]] = {}
    for number in np.flatnonzero(problem.end == NEVER)[::-1].tolist():
        waiting.setdefault(int(problem.kind[number]), []).append(number)
    return [step if step >= 0 else waiting[-1 - step].pop() for step in steps]


def _with_unseen(problem: Problem, placed: list[int]) -> list[int]:
    """Put each overwrite that is left right before an overwrite that took effect while it was open.

    The place is right: everything before it began before the overwrite's end, and everything behind it ends after the
    overwrite's start. If there is such a place, it is found.
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
        # must_end ascends, so this is the first place behind all operations that ended before this one began.
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
