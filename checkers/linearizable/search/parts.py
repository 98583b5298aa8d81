"""An object by its parts: what is linearizable part by part is linearizable as a whole, and found to be so much sooner.

A part is what calls on it read and change by themselves: an element of a set, a register of several. Calls that touch
several parts tie them together, and one that touches all of them (a read of the whole set) leaves nothing to split.
Each part is judged from the initial state of the whole object, of which it never sees more than its own.

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
    """Some calls on an object, which touch nothing that the others touch."""

    calls: Calls
    problem: Problem


def parts(model: Model, calls: Calls) -> list[Part]:
    """At least one, by their first calls. An indefinite call that touches all of the object ties its parts only if
    an operation could need it."""
    touched = [model.parts(call) for call in calls.calls]
    if None in touched:
        calls = useful(model, calls)
        touched = [model.parts(call) for call in calls.calls]
    chosen = components(touched)
    own = [calls] if len(chosen) <= 1 else [calls.part(np.array(numbers, dtype=np.int64)) for numbers in chosen]
    return [Part(calls=part, problem=problem_of(model, part)) for part in own]


def components(touched: Sequence[Collection[Hashable] | None]) -> list[list[int]]:
    """Positions that are tied together by what they touch, each list ascending, by their first; None touches all."""
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
        # Each takes effect right behind the last begin of those before it in its part, which is before its end.
        latest = -1
        for number in decision.orders[0]:
            start = int(part.calls.start[number])
            latest = max(latest, start)
            moments.append((latest, start))
    return [start for _, start in sorted(moments, key=lambda moment: moment[0])]
