"""Whatever elements look like, by every decider, a set or a log gets the verdict of brute force, with a window that
convicts it and answers that would have fitted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from checkers.linearizable import replay
from checkers.linearizable.deciders.spans import Contradiction
from checkers.linearizable.history.rows import object_rows
from checkers.linearizable.model import Model
from checkers.linearizable.object_findings import object_findings, object_orders
from checkers.linearizable.objects import MODELS
from checkers.linearizable.question import Question, asked
from checkers.linearizable.searches import NONLINEARIZABLE
from harness.record.history import history_schema
from tests.references.content_histories import Rows, made_up_contents, operations_in, spans_of_contents
from tests.references.queue_histories import has_order

LIMIT = 1_000_000
JSON = pa.struct([pa.field("json", pa.string())])
NAMES = ["append-log", "set"]

SHAPES: dict[str, Callable[[int], Any]] = {
    "integers": int,
    "names": lambda element: f"v{element:02}",
    "pairs": lambda element: [element, "x"],
    "mixed": lambda element: element if element % 2 else str(element),
    "truths": lambda element: (0, 1, False, True)[element] if element < 4 else element,
}


def shaped(rows: Rows, shape: str) -> Rows:
    """The same with other elements; positions and booleans stay what they are."""
    of = SHAPES[shape]

    def value(row: dict[str, Any]) -> Any:
        answer = row["value"]
        if answer is None or isinstance(answer, bool):
            return answer
        if row["f"] == "append" and isinstance(answer, list):
            return [answer[0], of(answer[1])]
        return [of(element) for element in answer] if isinstance(answer, list) else of(answer)

    return [row | {"value": value(row)} for row in rows]


def kernel_rows(rows: Rows) -> pa.Table:
    written = [row | {"time": row["index"], "value": {"json": json.dumps(row["value"])}, "node": None} for row in rows]
    return object_rows(pa.Table.from_pylist(written, schema=history_schema(JSON)), buckets=1)


def judge(model: Model, rows: Rows) -> bool:
    """Whether it is linearizable, as the kernels say; what they say besides is held against brute force."""
    table = kernel_rows(rows)
    found = object_findings(table, model=model, limit=LIMIT).to_pylist()
    [broken] = [row for row in found if row["name"] == NONLINEARIZABLE and row["because"]] or [None]
    operations = operations_in(rows)
    assert (broken is None) is has_order(model, operations), (rows, broken)
    orders = object_orders(table, model=model, limit=LIMIT).to_pylist()
    assert len(orders) == (broken is None)
    for row in orders:
        wrong = replay.fault(rows, {"k": row["order"]}, lambda: replay.OBJECTS[model.name](None), False)
        assert wrong is None, (rows, row, wrong)
    return broken is None


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("name", NAMES)
def test_contents_get_the_same_verdict_whatever_they_hold(name: str, shape: str) -> None:
    rng = random.Random(f"{name} {shape}")
    model = MODELS[name]
    judged = []
    for _ in range(50):
        rows = made_up_contents(model, (), rng, rng.randint(1, 8), lies=0.3, unknown=0.2)
        judged.append(judge(model, shaped(rows, shape)))
    assert min(judged.count(True), judged.count(False)) > 2


@pytest.mark.parametrize("name", NAMES)
def test_contents_travel_as_the_columns_that_are_decided(name: str) -> None:
    rng = random.Random(f"columns {name}")
    model = MODELS[name]
    for _ in range(100):
        rows = made_up_contents(model, (), rng, rng.randint(1, 8), lies=0.3, unknown=0.2)
        question = asked(model, kernel_rows(rows))
        assert isinstance(question, Question)
        spans, expected = question.spans, spans_of_contents(model, rows)
        for column in ("start", "end", "f", "argument", "result"):
            assert getattr(spans, column).tolist() == getattr(expected, column).tolist(), (rows, column)
        assert spans.lists is not None and expected.lists is not None
        assert spans.lists.elements.tolist() == expected.lists.elements.tolist()
        assert spans.lists.bounds.tolist() == expected.lists.bounds.tolist()


@pytest.mark.parametrize(
    ("name", "f", "answer"),
    [
        ("set", "contains", 1),
        ("set", "read", None),
        ("set", "read", 7),
        ("append-log", "read", None),
        ("append-log", "append", [0, 8]),
        ("append-log", "append", [0]),
        ("append-log", "append", [False, 7]),
    ],
)
def test_answers_that_no_such_object_gives_are_left_to_the_search(name: str, f: str, answer: Any) -> None:
    row = {"process": 0, "f": f, "key": "k", "error": None}
    begun = None if f == "read" else 7
    rows = [
        row | {"index": 0, "type": "invoke", "value": begun},
        row | {"index": 1, "type": "ok", "value": answer},
    ]
    assert not isinstance(asked(MODELS[name], kernel_rows(rows)), Question)
    judge(MODELS[name], rows)


@pytest.mark.parametrize("name", NAMES)
def test_a_window_convicts_alone_and_ends_where_the_contents_first_failed(name: str) -> None:
    rng = random.Random(f"window {name}")
    model = MODELS[name]
    windows = answers = 0
    while windows < 100:
        rows = made_up_contents(model, (), rng, rng.randint(3, 8), lies=0.3, unknown=0.2)
        question = asked(model, kernel_rows(rows))
        assert isinstance(question, Question)
        if not isinstance(question.decide(), Contradiction):
            continue
        found = object_findings(kernel_rows(rows), model=model, limit=LIMIT).to_pylist()
        for broken in (row for row in found if row["because"]):
            windows += 1
            last = max(broken["operations"])
            assert has_order(model, operations_in(rows[:last])), rows
            inside = [one for one in operations_in(rows[: last + 1]) if one[0] in broken["operations"]]
            assert not has_order(model, inside), (rows, broken)
            [prefix] = json.loads(broken["details"])["longest_prefixes"]
            for answer in prefix["would_have_told"]:
                answers += 1
                instead = [*rows[:last], rows[last] | {"value": json.loads(answer)}]
                assert has_order(model, operations_in(instead)), (rows, broken)
            order = replay.fault(rows[:last], {"k": prefix["order"]}, lambda: replay.OBJECTS[name](None), False)
            assert order is None, (rows, prefix, order)
    assert answers > windows // 4
