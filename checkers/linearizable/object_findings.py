"""Kernels that decide objects of any model: by the decider of their kind, otherwise by search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from checkers.api.findings import MALFORMED, Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Int64, codes
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered
from checkers.linearizable.evidence.contradicted import contradicted
from checkers.linearizable.history.calls import calls_of
from checkers.linearizable.history.rows import objects, rows_of
from checkers.linearizable.model import Model
from checkers.linearizable.question import Question, asked
from checkers.linearizable.search.parts import order_of_parts, parts
from checkers.linearizable.searches import NONLINEARIZABLE, Bounds, OpenObject, meaningless, searches
from checkers.search_budget import Searches

OBJECTS = "objects"

Contradicted: TypeAlias = tuple[tuple[int, ...], str, Question]
"""An object whose operations contradict each other: (invocations of some that do, its key, its question)."""

ORDERS = pa.schema([pa.field("key", pa.string()), pa.field("order", pa.list_(pa.int64()))])


def object_orders(rows: pa.Table, *, model: Model, limit: int) -> pa.Table:
    """Kernel over all rows of a bucket of objects: an order for each that has one, as far as limit and time allow."""
    keys, orders = [], []
    for key, own in objects(rows):
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


def object_findings(
    rows: pa.Table,
    *,
    model: Model,
    limit: int,
    which: Searches = Searches.UNTIL_INVALID,
) -> pa.Table:
    """Kernel over all rows of a bucket of objects: all that have a decider are decided, then some others are
    searched."""
    malformed: list[Example] = []
    contradictions: list[Contradicted] = []
    left: list[OpenObject] = []
    count = 0
    for key, own in objects(rows):
        count += 1
        wrong = np.flatnonzero(codes(own["f"], model.functions) < 0)
        if len(wrong):
            row = own.slice(wrong[0], 1).to_pylist()[0]
            because = f"{model.name} has no {row['f']!r}, only {', '.join(model.functions)}"
            malformed.append(Example(key=key, operations=(row["index"],), because=because))
            continue
        try:
            question = asked(model, own)
            outcome = question.decide() if isinstance(question, Question) else question
        except (TypeError, ValueError) as error:
            malformed.append(meaningless(key, model, own["index"][0].as_py(), error))
            continue
        if isinstance(outcome, Contradiction):
            assert isinstance(question, Question)
            starts = question.spans.start[sorted(outcome.operations)].tolist()
            contradictions.append((tuple(starts), key, replace(question, witnesses=tuple(starts))))
        elif isinstance(outcome, Open):
            left.append(_left(key, model, own, outcome))
    counts = counted(model, contradictions, left, Bounds(configurations=limit, which=which))
    unsearchable, examples = counts[MALFORMED]
    counts[MALFORMED] = len(malformed) + unsearchable, malformed + examples
    return findings_of_objects(count, counts)


def counted(
    model: Model, contradictions: Sequence[Contradicted], left: Sequence[OpenObject], bounds: Bounds
) -> dict[str, tuple[int, list[Example]]]:
    """name -> (count, examples) of what deciders found and of what they left open."""
    # Only some are shown, because finding what would have fitted takes longer than finding that nothing does.
    smallest = sorted(contradictions, key=lambda one: one[:2])[:EXAMPLES]
    shown = [contradicted(key, model, question) for _, key, question in smallest]
    found = searches(model, left, bounds, is_broken=bool(contradictions))
    broken = found[NONLINEARIZABLE]
    counts = {name: (len(examples), examples) for name, examples in found.items()}
    return counts | {NONLINEARIZABLE: (len(contradictions) + len(broken), shown + broken)}


def _left(key: str, model: Model, rows: pa.Table, outcome: Open) -> OpenObject:
    return OpenObject(
        key=key,
        why=outcome.because,
        size=rows.num_rows,
        first=rows["index"][0].as_py(),
        calls=lambda: calls_of(model, rows_of(rows)),
    )


def findings_of_objects(objects: int, found: Mapping[str, tuple[int, Sequence[Example]]]) -> pa.Table:
    """FINDINGS from name -> (count, examples); the smallest examples are among them."""
    findings = Findings()
    findings.tally(OBJECTS, objects)
    for name, (count, examples) in found.items():
        report = findings.add if name == NONLINEARIZABLE else findings.tally
        report(name, count, sorted(examples, key=lambda example: (example.operations, example.key))[:EXAMPLES])
    return findings.table()
