"""Whatever values look like, by every decider, a queue gets the verdict of brute force, with a window that convicts
it and answers that would have fitted. A stack is a queue here."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from checkers.linearizable import replay
from checkers.linearizable.deciders.spans import Contradiction
from checkers.linearizable.evidence import contradicted
from checkers.linearizable.history.rows import object_rows
from checkers.linearizable.model import Model
from checkers.linearizable.object_findings import object_findings, object_orders
from checkers.linearizable.objects import MODELS
from checkers.linearizable.question import Question, asked
from checkers.linearizable.searches import NONLINEARIZABLE
from harness.record.history import history_schema
from tests.references.queue_histories import Rows, linearizable, made_up_rows, spans_of

LIMIT = 1_000_000
INTEGERS = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])
JSON = pa.struct([pa.field("json", pa.string())])

QUEUES = ["fifo-queue", "unordered-queue", "stack", "priority-queue"]

Value = Callable[[int | None], Any]


def integer(value: int | None) -> Any:
    return {"value": value, "expected": None}


def integer_in_json(value: int | None) -> Any:
    return {"json": json.dumps(value)}


def name_in_json(value: int | None) -> Any:
    return {"json": json.dumps(None if value is None else f"v{value:02}")}


def pair_in_json(value: int | None) -> Any:
    return {"json": json.dumps(None if value is None else {"id": value, "of": [1, "x"]})}


def truth_in_json(value: int | None) -> Any:
    return {"json": json.dumps((0, 1, False, True)[value] if value in (0, 1, 2, 3) else value)}


SHAPES: dict[str, tuple[pa.DataType, Value]] = {
    "integers": (INTEGERS, integer),
    "integers as JSON": (JSON, integer_in_json),
    "names": (JSON, name_in_json),
    "maps": (JSON, pair_in_json),
    "truths": (JSON, truth_in_json),
}
"""Truths have no order, which a priority queue needs."""


def kernel_rows(rows: Rows, shape: str) -> pa.Table:
    kind, value = SHAPES[shape]
    written = [row | {"time": row["index"], "value": value(row["value"]), "node": None} for row in rows]
    return object_rows(pa.Table.from_pylist(written, schema=history_schema(kind)), buckets=1)


def judge(model: Model, rows: Rows, shape: str) -> bool:
    """Whether it is linearizable, as the kernels say; what they say besides is held against brute force."""
    table = kernel_rows(rows, shape)
    found = object_findings(table, model=model, limit=LIMIT).to_pylist()
    [broken] = [row for row in found if row["name"] == NONLINEARIZABLE and row["because"]] or [None]
    spans = spans_of(model, rows)
    assert (broken is None) is linearizable(model, spans, (), range(len(spans))), (rows, broken)
    orders = object_orders(table, model=model, limit=LIMIT).to_pylist()
    assert len(orders) == (broken is None)
    for row in orders:
        wrong = replay.fault(rows, {"k": row["order"]}, lambda: replay.OBJECTS[model.name](None), False)
        assert wrong is None, (rows, row, wrong)
    return broken is None


@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, shape) for name in QUEUES for shape in SHAPES if (name, shape) != ("priority-queue", "truths")],
)
def test_a_queue_gets_the_same_verdict_whatever_it_holds(name: str, shape: str) -> None:
    rng = random.Random(f"{name} {shape}")
    model = MODELS[name]
    judged = []
    for _ in range(50):
        rows = made_up_rows(model, (), rng, rng.randint(1, 8), lies=0.4, unknown=0.2)
        judged.append(judge(model, rows, shape))
    assert min(judged.count(True), judged.count(False)) > 2


@pytest.mark.parametrize("name", QUEUES)
def test_where_elements_repeat_the_search_decides(name: str) -> None:
    rng = random.Random(name)
    model = MODELS[name]
    judged = []
    for _ in range(50):
        rows = made_up_rows(model, (), rng, rng.randint(4, 8), lies=0.4, unknown=0.2)
        same = [row | {"value": None if row["value"] is None else row["value"] // 2} for row in rows]
        judged.append(judge(model, same, "integers"))
    assert min(judged.count(True), judged.count(False)) > 2


@pytest.mark.parametrize("near", [1, contradicted.NEAR])
@pytest.mark.parametrize("name", QUEUES)
def test_a_window_convicts_alone_and_ends_where_the_queue_first_failed(
    name: str, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contradicted, "NEAR", near)
    monkeypatch.setattr(contradicted, "FURTHER", 2)
    rng = random.Random(f"window {name}")
    model = MODELS[name]
    windows = answers = 0
    while windows < 100:
        rows = made_up_rows(model, (), rng, rng.randint(3, 8), lies=0.4, unknown=0.2)
        table = kernel_rows(rows, "integers")
        question = asked(model, table)
        assert isinstance(question, Question)
        if not isinstance(question.decide(), Contradiction):
            continue
        found = object_findings(table, model=model, limit=LIMIT).to_pylist()
        for broken in (row for row in found if row["because"]):
            windows += 1
            last = max(broken["operations"])
            before, until = spans_of(model, rows[:last]), spans_of(model, rows[: last + 1])
            assert linearizable(model, before, (), range(len(before))), rows
            inside = [i for i in range(len(until)) if until.start[i] in broken["operations"]]
            assert not linearizable(model, until, (), inside), (rows, broken)
            [prefix] = json.loads(broken["details"])["longest_prefixes"]
            for answer in prefix["would_have_told"]:
                answers += 1
                instead = [*rows[:last], rows[last] | {"value": json.loads(answer)}]
                fitting = spans_of(model, instead)
                assert linearizable(model, fitting, (), range(len(fitting))), (rows, broken)
            order = replay.fault(rows[:last], {"k": prefix["order"]}, lambda: replay.OBJECTS[name](None), False)
            assert order is None, (rows, prefix, order)
    assert answers > windows // 2
