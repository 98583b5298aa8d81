"""Why an object is not linearizable: a few operations that contradict each other, whatever the others did.

A window begins as late as the operation that fits nowhere allows, with all states in which the object can have been at
that moment. An operation that was open then, or that is left out later, may have taken effect at any time after its
invocation, or never, as if it were indefinite. So the operations that are left are a proof by themselves. As far as the
effort allows, none of them can be left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.search.decision import NOT_LINEARIZABLE, Decision, approaching, decide
from checkers.linearizable.search.events import READS
from checkers.linearizable.search.timeline import Problem
from checkers.linearizable.values import NEVER

TRIED = 128
"""The most operations that are left out of a window to make it smaller."""
TRIED_CONFIGURATIONS = 20_000
"""The most configurations that are explored for one such attempt, in all states together."""


@dataclass(frozen=True, kw_only=True)
class UnorderableWindow:
    """Operations that cannot be ordered, whatever state the object was in when they began."""

    numbers: Int64
    """The operations, which all completed no later than the one that is stuck."""
    loose: Int64
    """Operations that may or may not have taken effect meanwhile, which makes no difference."""
    stuck: int
    """The operation that fits nowhere behind the others."""
    before: tuple[Any, ...]
    """All states in which the object can have been before, and perhaps others."""


@dataclass(frozen=True)
class _Attempt:
    """Some operations as they were recorded, and others that may or may not have taken effect."""

    definite: Int64
    loose: Int64

    def without(self, problem: Problem, number: int) -> _Attempt:
        reads = problem.does[problem.kind[number]] == READS
        return _Attempt(self.definite[self.definite != number], self.loose if reads else np.append(self.loose, number))


def window(problem: Problem, decision: Decision, *, limit: int) -> UnorderableWindow:
    """A window for a decision that there is no order. Cost: at most `limit` configurations once more, and the
    attempts."""
    stuck = decision.stuck_at
    last = int(problem.end[stuck])
    found = _from(problem, -1, last)
    before: tuple[Any, ...] = (problem.initial,)
    for moment, states in approaching(problem, decision, limit=limit):
        attempt = _from(problem, moment, last)
        if _fails(problem, attempt, states, last):
            found, before = attempt, states
            break
    for number in found.definite[found.definite != stuck][::-1][:TRIED].tolist():
        fewer = found.without(problem, number)
        if _fails(problem, fewer, before, last):
            found = fewer
    return UnorderableWindow(numbers=found.definite, loose=found.loose, stuck=stuck, before=before)


def _from(problem: Problem, moment: int, last: int) -> _Attempt:
    """What was open at a moment or later, up to the last completion. Only operations that both began and ended
    meanwhile are taken as they were recorded."""
    concerned = np.flatnonzero((problem.start < last) & (problem.end > moment))
    is_known = (problem.start[concerned] > moment) & (problem.end[concerned] <= last)
    reads = problem.does[problem.kind[concerned]] == READS
    return _Attempt(concerned[is_known], concerned[~is_known & ~reads])


def _fails(problem: Problem, attempt: _Attempt, states: tuple[Any, ...], last: int) -> bool:
    numbers = np.sort(np.concatenate((attempt.definite, attempt.loose)))
    part = problem.part(numbers, problem.initial)
    part = replace(
        part,
        end=np.where(np.isin(numbers, attempt.loose), NEVER, part.end),
        # A loose operation may need one that no other operation needed any more.
        over=np.full_like(part.over, last),
    )
    left = TRIED_CONFIGURATIONS
    for state in states:
        decision = decide(replace(part, initial=state), limit=left)
        left -= decision.explored
        if decision.outcome != NOT_LINEARIZABLE:
            return False
    return True
