"""Decides an object part by part: if each part is linearizable, so is the whole, and that is found much sooner.

A part is independent of the others: an element of a set, or one of several registers. A call that touches several parts
ties them together, and one that touches all of them (a read of the whole set) leaves nothing to split. The search for
each part begins with the initial state of the whole object, but its calls never touch more than the part.

Source: Herlihy and Wing, Linearizability: A Correctness Condition for Concurrent Objects, TOPLAS 12 (1990),
theorem 1.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from checkers.linearizable.history.calls import Calls
from checkers.linearizable.model import Model
from checkers.linearizable.search.decision import LINEARIZABLE, NOT_LINEARIZABLE, Decision, decide, decide_with_orders
from checkers.linearizable.search.problem import problem_of, useful
from checkers.linearizable.search.timeline import Problem


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some calls on an object that touch nothing that the other calls touch."""

    calls: Calls
    problem: Problem


def parts(model: Model, calls: Calls) -> list[Part]:
    """The parts, at least one, in the order of their first calls. An indefinite call that touches the whole object ties
    its parts together only if an operation could need it."""
    touched = [model.parts(call) for call in calls.calls]
    if None in touched:
        calls = useful(model, calls)
        touched = [model.parts(call) for call in calls.calls]
    chosen = components(touched)
    own = [calls] if len(chosen) <= 1 else [calls.part(np.array(numbers, dtype=np.int64)) for numbers in chosen]
    return [Part(calls=part, problem=problem_of(model, part)) for part in own]


def components(touched: Sequence[Collection[Hashable] | None]) -> list[list[int]]:
    """Lists of positions that are tied together by what they touch, where None touches all. Each list ascends, and the
    lists are in the order of their first positions."""
    if any(names is None for names in touched):
        return [list(range(len(touched)))]
    owner: dict[Hashable, int] = {}
    above = list(range(len(touched)))

    def top(position: int) -> int:
        while above[position] != position:
            above[position] = above[above[position]]
            position = above[position]
        return position

    for position, names in enumerate(touched):
        for name in names or ():
            one, other = sorted((top(owner.setdefault(name, position)), top(position)))
            above[other] = one
    found: dict[int, list[int]] = {}
    for position in range(len(touched)):
        found.setdefault(top(position), []).append(position)
    return list(found.values())


def decide_parts(parts: Sequence[Part], *, limit: int) -> tuple[Part, Decision]:
    """The part that decides how all of them end: the first that is not linearizable, else the first that is undecided,
    else the last one. At most `limit` configurations are explored in all."""
    deciding: tuple[Part, Decision] | None = None
    explored = 0
    for part in parts:
        decision = decide(part.problem, limit=limit - explored)
        explored += decision.explored
        if deciding is None or deciding[1].outcome == LINEARIZABLE or decision.outcome == NOT_LINEARIZABLE:
            deciding = part, decision
        if decision.outcome == NOT_LINEARIZABLE:
            break
    assert deciding is not None, "every object has a part"
    return deciding[0], replace(deciding[1], explored=explored)


def order_of_parts(parts: Sequence[Part], *, limit: int) -> list[int] | None:
    """Starts of all calls that took effect, in an order that all parts agree with; None if none was found."""
    moments: list[tuple[int, int]] = []
    for part in parts:
        decision = decide_with_orders(part.problem, limit=limit)
        if decision.outcome != LINEARIZABLE:
            return None
        # Each call takes effect right after the last start of those before it in its part, which is before its end.
        latest = -1
        for number in decision.orders[0]:
            start = int(part.calls.start[number])
            latest = max(latest, start)
            moments.append((latest, start))
    return [start for _, start in sorted(moments, key=lambda moment: moment[0])]
