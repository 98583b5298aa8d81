"""A decider's outcome held against all orders, and its order against the replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from checkers.linearizable import replay
from checkers.linearizable.deciders.spans import Contradiction, Decider, Open, Ordered, Outcome, Spans
from checkers.linearizable.objects import MODELS


def decider(name: str) -> Decider:
    decided = MODELS[name].decided
    assert decided is not None, f"{name} is always searched"
    return decided.by


def held_against_all_orders(
    name: str,
    rows: list[dict[str, Any]],
    spans: Spans,
    initial: tuple[int, ...],
    orderable: Callable[[Sequence[int]], bool],
) -> Outcome:
    """What the decider of this model says. Unless it leaves the case open: `orderable`, which tries all orders of
    operations by their positions, agrees; an order replays; and witnesses convict alone."""
    outcome = decider(name).decide(spans, initial)
    if isinstance(outcome, Open):
        return outcome
    expected = orderable(range(len(spans)))
    assert isinstance(outcome, Ordered if expected else Contradiction), (rows, initial, outcome)
    if isinstance(outcome, Contradiction):
        assert not orderable(sorted(outcome.operations)), (rows, initial, outcome)
        return outcome
    wrong = fault_of_order(name, rows, spans, initial)
    assert wrong is None, (rows, initial, wrong)
    return outcome


def fault_of_order(name: str, rows: list[dict[str, Any]], spans: Spans, initial: tuple[int, ...]) -> str | None:
    """What the replay says against the decider's order."""
    order = spans.start[decider(name).order(spans, initial)].tolist()
    return replay.fault(rows, {"k": order}, lambda: replay.OBJECTS[name](list(initial)), False)
