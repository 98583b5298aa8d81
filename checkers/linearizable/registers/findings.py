"""Registers that hold integers: columns from end to end, so that Python only handles registers that may not be
linearizable.

All registers of a bucket are looked at together; those that `suspects` names are decided one by one.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from checkers.api.findings import FINDINGS
from checkers.api.plan import Dataset, Engine
from checkers.buckets import bucket_count
from checkers.kernels.columns import NONE, Bool, Int64
from checkers.linearizable.deciders.register_functions import CAS, CAS_MISS, FUNCTIONS, READ
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Spans
from checkers.linearizable.history.calls import Calls
from checkers.linearizable.model import FAILED, INDEFINITE, Call, FailedCas, Model
from checkers.linearizable.object_findings import ORDERS, Contradicted, counted, findings_of_objects
from checkers.linearizable.objects import register
from checkers.linearizable.objects.register import Register, suspects
from checkers.linearizable.question import Question
from checkers.linearizable.registers.rows import NAMED, SPANS, all_whole, from_batch, from_table, without_operations
from checkers.linearizable.search.parts import order_of_parts, parts
from checkers.linearizable.searches import Bounds, OpenObject
from checkers.linearizable.values import NEVER
from checkers.search_budget import Searches


def hold_integers(model: Model, history: Dataset) -> bool:
    """Whether this is a register of which the history can only show integers and null."""
    value = history.schema.field("value").type
    if model.apply is not register.MODEL.apply or not pa.types.is_struct(value):
        return False
    types = [field.type for field in value if field.name in ("value", "expected", "json")]
    integers = all(pa.types.is_signed_integer(kind) or pa.types.is_null(kind) for kind in types)
    return integers and (model.initial is None or (type(model.initial) is int and NONE < model.initial <= -(NONE + 1)))


def findings(
    engine: Engine,
    history: Dataset,
    rows: int,
    *,
    model: Model,
    limit: int,
    which: Searches = Searches.UNTIL_INVALID,
) -> Dataset:
    """FINDINGS of all registers of a history with so many rows."""
    spans = partial(spans_by_register, failed_cas=model.failed_cas, buckets=bucket_count(rows))
    kernel = partial(register_findings, model=model, limit=limit, which=which)
    return engine.grouped(engine.mapped(history, spans, SPANS), ("bucket",), kernel, FINDINGS)


def orders(engine: Engine, history: Dataset, rows: int, *, model: Model, limit: int) -> Dataset:
    """ORDERS of registers."""
    spans = partial(spans_and_names, failed_cas=model.failed_cas, buckets=bucket_count(rows))
    kernel = partial(register_orders, model=model, limit=limit)
    return engine.grouped(engine.mapped(history, spans, SPANS), ("bucket",), kernel, ORDERS)


def spans_by_register(batch: pa.Table, *, failed_cas: FailedCas, buckets: int) -> pa.Table:
    """Kernel: the operations of a batch."""
    return from_batch(batch, failed_cas).by_key(buckets)


def spans_and_names(batch: pa.Table, *, failed_cas: FailedCas, buckets: int) -> pa.Table:
    """Kernel: the operations of a batch, and the names of its registers that have none."""
    recorded = from_batch(batch, failed_cas)
    return pa.concat_tables([recorded.by_key(buckets), without_operations(batch, recorded).by_key(buckets)])


def register_findings(
    rows: pa.Table,
    *,
    model: Model,
    limit: int,
    which: Searches = Searches.UNTIL_INVALID,
) -> pa.Table:
    """Kernel over all operations on the registers of a bucket: all are decided that can be, then some others are
    searched."""
    recorded = all_whole(from_table(rows))
    suspected = suspects(recorded.registers(_initial(model)))
    contradictions: list[Contradicted] = []
    left: list[OpenObject] = []
    for key, spans in recorded.by_register(suspected):
        question = _question(model, spans)
        outcome = question.decide()
        if isinstance(outcome, Contradiction):
            contradictions.append((tuple(spans.start[sorted(outcome.operations)].tolist()), key, question))
        elif isinstance(outcome, Open):
            left.append(_left(key, model, spans, outcome))
    counts = counted(model, contradictions, left, Bounds(configurations=limit, which=which))
    return findings_of_objects(len(np.unique(recorded.register)), counts)


def _left(key: str, model: Model, spans: Spans, outcome: Open) -> OpenObject:
    return OpenObject(
        key=key,
        why=outcome.because,
        size=len(spans),
        first=int(spans.start[0]),
        calls=lambda: calls_of_spans(model, spans),
    )


def register_orders(rows: pa.Table, *, model: Model, limit: int) -> pa.Table:
    """Kernel over all operations on the registers of a bucket: an order for each that has one within the limit.

    The order of a register without operations is empty.
    """
    table = from_table(rows)
    recorded = all_whole(table.part(table.type != NAMED))
    keys, found = [], []
    for key, spans in recorded.by_register(np.arange(len(recorded.names))):
        order = _order(model, spans, limit) if len(spans.start) else []
        if order is not None:
            keys.append(key)
            found.append(order)
    return pa.table({"key": keys, "order": found}, schema=ORDERS)


def _order(model: Model, spans: Spans, limit: int) -> list[int] | Int64 | None:
    question = _question(model, spans)
    outcome = question.decide()
    if isinstance(outcome, Open):
        return order_of_parts(parts(model, calls_of_spans(model, spans)), limit=limit)
    return question.order() if isinstance(outcome, Ordered) else None


READS: Bool = np.isin(np.arange(CAS_MISS + 1), (READ, CAS_MISS))


def _question(model: Model, spans: Spans) -> Question:
    return Question(decider=Register(), spans=spans, initial=(_initial(model),), reads=READS)


def _initial(model: Model) -> int:
    return NONE if model.initial is None else int(model.initial)


def calls_of_spans(model: Model, spans: Spans) -> Calls:
    """The same operations as calls of the model, without those that show nothing."""
    assert spans.expected is not None
    columns = (spans.f, spans.argument, spans.result, spans.expected, spans.end != NEVER)
    calls = []
    for f, *numbers, definite in zip(*(column.tolist() for column in columns), strict=True):
        argument, result, expected = (None if number == NONE else number for number in numbers)
        if f == CAS_MISS:
            calls.append(Call(f=FUNCTIONS[CAS], argument=(expected, argument), result=FAILED))
            continue
        known = result if definite else INDEFINITE
        calls.append(Call(f=FUNCTIONS[f], argument=(expected, argument) if f == CAS else argument, result=known))
    whole = Calls(calls=calls, start=spans.start, end=spans.end)
    return whole.part(np.array([n for n, call in enumerate(calls) if not model.says_nothing(call)], dtype=np.int64))
