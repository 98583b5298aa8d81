"""Kernels over all that was recorded of objects of any model: by the decider of their kind, else by search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.findings import Example, Findings, said_of
from checkers.kernels.columns import Int64, codes
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered
from checkers.linearizable.evidence.contradicted import contradicted
from checkers.linearizable.evidence.surroundings import Operations, longest_prefix, surroundings
from checkers.linearizable.evidence.window import UnorderableWindow, window
from checkers.linearizable.history.calls import Calls, calls_of
from checkers.linearizable.history.rows import objects, rows_of
from checkers.linearizable.model import Model, describe, possible_results
from checkers.linearizable.question import Question, asked
from checkers.linearizable.search.deadline import searching_until
from checkers.linearizable.search.decision import (
    AT_FIRST,
    ENDLESS,
    NOT_LINEARIZABLE,
    UNDECIDED,
    Decision,
    decide_with_orders,
)
from checkers.linearizable.search.parts import Part, decide_parts, order_of_parts, parts
from checkers.linearizable.values import NEVER, shown
from checkers.verdict import EXAMPLES

NONLINEARIZABLE = "nonlinearizable"
UNDECIDED_OBJECT = "undecided"
OBJECTS = "objects"
MALFORMED = "malformed"

ORDERS = pa.schema([pa.field("key", pa.string()), pa.field("order", pa.list_(pa.int64()))])

SHOWN_STATES = 5


def object_orders(rows: pa.Table, *, model: Model, limit: int, until: float | None = None) -> pa.Table:
    """Kernel over all rows of a bucket of objects: an order for each that has one within the limit, and the time."""
    keys, orders = [], []
    for key, own in objects(rows):
        with searching_until(until):
            order = _order(model, own, limit)
        if order is not None:
            keys.append(key)
            orders.append(order)
    return pa.table({"key": keys, "order": orders}, schema=ORDERS)


def _order(model: Model, rows: pa.Table, limit: int) -> Sequence[int] | Int64 | None:
    question = asked(model, rows)
    if isinstance(question, Question):
        outcome = question.decide()
        if not isinstance(outcome, Open):
            return question.order() if isinstance(outcome, Ordered) else None
    return order_of_parts(parts(model, calls_of(model, rows_of(rows))), limit=limit)


def object_findings(rows: pa.Table, *, model: Model, limit: int, until: float | None = None) -> pa.Table:
    """Kernel over all rows of a bucket of objects."""
    found: dict[str, list[Example]] = {NONLINEARIZABLE: [], UNDECIDED_OBJECT: [], MALFORMED: []}
    contradictions: list[tuple[tuple[int, ...], str, Question]] = []
    count = 0
    for key, own in objects(rows):
        count += 1
        wrong = np.flatnonzero(codes(own["f"], model.functions) < 0)
        if len(wrong):
            row = own.slice(wrong[0], 1).to_pylist()[0]
            because = f"{model.name} has no {row['f']!r}, only {', '.join(model.functions)}"
            found[MALFORMED].append(Example(key=key, operations=(row["index"],), because=because))
            continue
        try:
            with searching_until(until):
                judged = _judge(key, model, own, limit)
            if isinstance(judged, Question):
                contradictions.append((judged.witnesses, key, judged))
                judged = None
        except (TypeError, ValueError) as error:
            which = f"object {key!r}" if key else "the object"
            because = f"{which} has a value that means nothing to model {model.name}: {error}"
            judged = MALFORMED, Example(key=key, operations=(own["index"][0].as_py(),), because=because)
        if judged is not None:
            found[judged[0]].append(judged[1])
    # Only some will be shown, and finding what would have fitted takes longer than finding that nothing does.
    smallest = sorted(contradictions, key=lambda one: one[:2])[:EXAMPLES]
    broken = len(contradictions) + len(found[NONLINEARIZABLE])
    found[NONLINEARIZABLE] += [contradicted(key, model, question) for _, key, question in smallest]
    counts = {name: (len(examples), examples) for name, examples in found.items()}
    return findings_of_objects(count, counts | {NONLINEARIZABLE: (broken, found[NONLINEARIZABLE])})


def findings_of_objects(objects: int, found: Mapping[str, tuple[int, Sequence[Example]]]) -> pa.Table:
    """By name how often, and examples, with the smallest among them."""
    findings = Findings()
    findings.add(OBJECTS, objects, [])
    for name, (count, examples) in found.items():
        findings.add(name, count, sorted(examples, key=lambda example: (example.operations, example.key))[:EXAMPLES])
    return findings.table()


def _judge(key: str, model: Model, rows: pa.Table, limit: int) -> tuple[str, Example] | Question | None:
    """What is to be said of an object: nothing if it is linearizable; the question, if that contradicts itself. By the
    decider of its kind, else by search."""
    question = asked(model, rows)
    outcome = question.decide() if isinstance(question, Question) else question
    if isinstance(outcome, Ordered):
        return None
    if isinstance(outcome, Contradiction):
        assert isinstance(question, Question)
        return replace(question, witnesses=tuple(question.spans.start[sorted(outcome.operations)].tolist()))
    return searched(key, model, calls_of(model, rows_of(rows)), limit, outcome.because)


def searched(key: str, model: Model, calls: Calls, limit: int, why: str) -> tuple[str, Example] | None:
    """What is to be said of an object after a search: nothing if it is linearizable. `why`: the reason for which no
    decider could say it."""
    part, decision = decide_parts(parts(model, calls), limit=limit)
    if decision.outcome == NOT_LINEARIZABLE:
        return NONLINEARIZABLE, _broken(key, model, calls, part, decision, limit)
    if decision.outcome == UNDECIDED:
        return UNDECIDED_OBJECT, _given_up(key, part.calls, decision, why)
    return None


def _broken(key: str, model: Model, recorded: Calls, part: Part, decision: Decision, limit: int) -> Example:
    """What could not be ordered, and which results would have fitted. `recorded` are all calls on the object."""
    calls, problem = part.calls, part.problem
    found = window(problem, decision, limit=limit)
    call = calls.calls[found.stuck]
    prefixes = _longest_prefixes(model, part, decision, found, limit)
    stuck = int(np.searchsorted(recorded.start, calls.start[found.stuck]))
    around = surroundings(model, _operations(recorded), stuck, range(len(recorded.calls)), next(iter(prefixes), {}))
    states = " or ".join(sorted({shown(state) for state in decision.possible})[:SHOWN_STATES])
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
    """From the beginning, if that takes not much more than the decision took; else from where the window begins."""
    problem = part.problem
    begun = np.flatnonzero(problem.start < problem.end[found.stuck])
    whole = decide_with_orders(
        problem.part(begun, problem.initial), limit=min(limit, AT_FIRST + ENDLESS * decision.explored)
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
                    "state": shown(after),
                    "stuck": describe(stuck),
                    "would_have_told": [shown(result) for result in possible_results(model, after, stuck)],
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
