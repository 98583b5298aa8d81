"""Searches objects that no decider of their kind decides, and reports on them.

Searches are expensive, and one broken promise settles the verdict. So unless all are asked for, none begins once an
object was found not to be linearizable; the objects that were left are named. Those with the fewest operations come
first, so that what can be found fast is found early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.api.findings import MALFORMED, Example, said_of
from checkers.kernels.columns import Int64
from checkers.linearizable.evidence.surroundings import Operations, longest_prefix, surroundings
from checkers.linearizable.evidence.window import UnorderableWindow, window
from checkers.linearizable.history.calls import Calls
from checkers.linearizable.model import Model, describe, possible_results
from checkers.linearizable.search.decision import (
    AT_FIRST,
    EVIDENCE_FACTOR,
    NOT_LINEARIZABLE,
    UNDECIDED,
    Decision,
    decide_with_orders,
)
from checkers.linearizable.search.parts import Part, decide_parts, parts
from checkers.linearizable.values import NEVER, render
from checkers.search_budget import Searches, saying_of

NONLINEARIZABLE = "nonlinearizable"
UNDECIDED_OBJECT = "undecided"
UNSEARCHED = "unsearched"
"""The names of tallies of objects, some of which are named in examples."""

SHOWN_STATES = 5


@dataclass(frozen=True, kw_only=True)
class OpenObject:
    """An object that was not decided by the decider of its kind."""

    key: str
    why: str
    """The reason why its decider left it open; empty if such objects have no decider."""
    size: int
    """How many rows or operations it has."""
    first: int
    """The index of one of its operations."""
    calls: Callable[[], Calls]
    """Returns its calls. Raises TypeError or ValueError for values that mean nothing."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How far the searches of a history go."""

    configurations: int
    """The most configurations that are explored for one object."""
    which: Searches = Searches.UNTIL_INVALID


def searches(
    model: Model, objects: Iterable[OpenObject], bounds: Bounds, *, is_broken: bool
) -> dict[str, list[Example]]:
    """name -> examples of objects after the searches. `is_broken`: a promise is broken already."""
    found: dict[str, list[Example]] = {NONLINEARIZABLE: [], UNDECIDED_OBJECT: [], UNSEARCHED: [], MALFORMED: []}
    ordered = sorted(objects, key=lambda one: (one.size, one.key))
    for number, one in enumerate(ordered, start=1):
        is_certain = is_broken or bool(found[NONLINEARIZABLE])
        try:
            calls = one.calls()
            of_it = parts(model, calls)
            if is_certain and bounds.which is Searches.UNTIL_INVALID:
                judged: tuple[str, Example] | None = UNSEARCHED, Example(key=one.key, operations=(), because=one.why)
            else:
                subject = f"{one.key or 'the object'}, {number} of {len(ordered)} to be searched"
                with saying_of(subject):
                    judged = _searched(one, model, calls, of_it, bounds.configurations)
        except (TypeError, ValueError) as error:
            judged = MALFORMED, meaningless(one.key, model, one.first, error)
        if judged is not None:
            found[judged[0]].append(judged[1])
    return found


def meaningless(key: str, model: Model, first: int, error: Exception) -> Example:
    """The example for an object whose values are not what the model expects. `first`: one of its operations."""
    which = f"object {key!r}" if key else "the object"
    because = f"{which} has a value that means nothing to model {model.name}: {error}"
    return Example(key=key, operations=(first,), because=because)


def _searched(
    one: OpenObject, model: Model, calls: Calls, of_it: Sequence[Part], limit: int
) -> tuple[str, Example] | None:
    """(name, example) for an object after a search; None if it is linearizable."""
    part, decision = decide_parts(of_it, limit=limit)
    if decision.outcome == NOT_LINEARIZABLE:
        return NONLINEARIZABLE, _broken(one.key, model, calls, part, decision, limit)
    if decision.outcome == UNDECIDED:
        return UNDECIDED_OBJECT, _given_up(one.key, part.calls, decision, one.why)
    return None


def _broken(key: str, model: Model, recorded: Calls, part: Part, decision: Decision, limit: int) -> Example:
    """The example with what could not be ordered, and the results that would have fitted. `recorded` are all calls on
    the object."""
    calls, problem = part.calls, part.problem
    found = window(problem, decision, limit=limit)
    call = calls.calls[found.stuck]
    prefixes = _longest_prefixes(model, part, decision, found, limit)
    stuck = int(np.searchsorted(recorded.start, calls.start[found.stuck]))
    around = surroundings(model, _operations(recorded), stuck, range(len(recorded.calls)), next(iter(prefixes), {}))
    states = " or ".join(sorted({render(state) for state in decision.possible})[:SHOWN_STATES])
    was = f"with all that had completed before, the state was {states}, and " if states else ""
    return Example(
        key=key,
        operations=_indices(calls, found.numbers),
        because=said_of(
            key,
            f"{describe(call)} (operation {calls.start[found.stuck]}, completed by {calls.end[found.stuck]}) fits "
            f"nowhere: {was}nothing that was open meanwhile explains what it returned",
        ),
        details={"longest_prefixes": prefixes} | around,
    )


def _operations(calls: Calls) -> Operations:
    return Operations(start=calls.start, end=calls.end, call=calls.calls.__getitem__)


def _longest_prefixes(
    model: Model, part: Part, decision: Decision, found: UnorderableWindow, limit: int
) -> list[dict[str, Any]]:
    """The longest prefixes, from the beginning if that takes not much more than the decision took; otherwise from where
    the window begins."""
    problem = part.problem
    begun = np.flatnonzero(problem.start < problem.end[found.stuck])
    whole = decide_with_orders(
        problem.part(begun, problem.initial), limit=min(limit, AT_FIRST + EVIDENCE_FACTOR * decision.explored)
    )
    tried = [(begun, problem.initial, whole)]
    if whole.outcome != NOT_LINEARIZABLE or not any(whole.orders):
        tried = [
            (found.numbers, state, decide_with_orders(problem.part(found.numbers, state), limit=limit))
            for state in found.before[:SHOWN_STATES]
        ]
    prefixes = []
    for numbers, before, ended in tried:
        stuck = part.calls.calls[int(numbers[ended.stuck_at])]
        for after, order in list(zip(ended.possible, ended.orders, strict=True))[:SHOWN_STATES]:
            prefix, _ = longest_prefix(model, before, _operations(part.calls), numbers[list(order)].tolist())
            prefixes.append(
                prefix
                | {
                    "state": render(after),
                    "stuck": describe(stuck),
                    "would_have_told": [render(result) for result in possible_results(model, after, stuck)],
                }
            )
    return prefixes


def _indices(calls: Calls, numbers: Int64) -> tuple[int, ...]:
    indices = {*calls.start[numbers].tolist(), *calls.end[numbers].tolist()}
    return tuple(sorted(indices - {NEVER}))


def _given_up(key: str, calls: Calls, decision: Decision, searched_because: str) -> Example:
    stuck = decision.stuck_at
    done = int((calls.end < decision.fits_until).sum())
    return Example(
        key=key,
        operations=_indices(calls, np.array([stuck] if stuck >= 0 else [], dtype=np.int64)),
        because=f"{key or 'the object'} is undecided after {done} of its {len(calls.calls)} operations"
        f"{', which have an order' if done else ''}, and {decision.explored:,} configurations: {decision.reason}"
        + (f" ({searched_because})" if searched_because else ""),
    )
