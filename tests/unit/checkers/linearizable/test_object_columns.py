"""Values of objects as columns: integers whatever they came as, others by their own order."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from checkers.kernels.columns import NONE
from checkers.linearizable.history.columns import spans_of
from checkers.linearizable.history.rows import object_rows, objects, rows_of
from checkers.linearizable.model import Columns
from checkers.linearizable.objects import MODELS
from checkers.linearizable.values import NEVER, render
from harness.record.history import history_schema

JSON = pa.struct([pa.field("json", pa.string())])
INTEGERS = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])
NAMES = pa.struct([pa.field("value", pa.string())])

QUEUE = MODELS["fifo-queue"]


def table(values: list[Any], kind: pa.DataType = JSON, f: str = "enqueue", type: str = "invoke") -> pa.Table:
    """A row a value, each of another process, as kernels get them."""
    rows = [
        {"index": i, "time": i, "process": i, "type": type, "f": f, "key": "k", "value": value}
        for i, value in enumerate(values)
    ]
    return object_rows(pa.Table.from_pylist(rows, schema=history_schema(kind)), buckets=1)


def json_table(*values: Any) -> pa.Table:
    return table([{"json": json.dumps(value)} for value in values])


def test_integers_travel_as_numbers_whatever_they_came_as() -> None:
    for rows in (json_table(5, -3, None), table([{"value": 5}, {"value": -3}, {"value": None}], INTEGERS)):
        assert rows["number"].to_pylist() == [5, -3, None]
        assert rows["text"].null_count == 3


@pytest.mark.parametrize("value", [2**63, -(2**63), 10**18, 1.5, True, "5", [1, 2], {"a": [1]}])
def test_everything_else_is_what_it_was(value: Any) -> None:
    row = rows_of(json_table(value))[0]
    assert render(row.value) == json.dumps(value)


def test_a_cas_of_integers_is_a_pair() -> None:
    rows = table([{"value": 2, "expected": 1}, {"value": 2, "expected": None}], INTEGERS, f="cas")
    assert [row.value for row in rows_of(rows)] == [(1, 2), (None, 2)]


def test_names_of_another_type_are_read_too() -> None:
    rows = table([{"value": "a"}, {"value": None}], NAMES)
    assert [row.value for row in rows_of(rows)] == ["a", None]


def test_values_are_numbered_in_their_own_order() -> None:
    spans, held = spans_of(QUEUE, json_table("b", "a", "c"), ("ab", "b"), Columns.VALUES)
    assert spans.argument.tolist() == [2, 0, 3]
    assert held == (1, 2)
    assert [spans.render(number) for number in (*held, NONE)] == ['"ab"', '"b"', "null"]
    assert set(spans.end.tolist()) == {NEVER}


def test_values_that_equal_each_other_have_one_number() -> None:
    spans, _ = spans_of(QUEUE, json_table(2, 2.0, 1.5, [1]).slice(0, 3), (), Columns.VALUES)
    assert spans.argument.tolist() == [1, 1, 0]


def test_values_without_an_order_have_numbers_only_where_no_model_compares_them() -> None:
    values = ("a", 1, [1, None], [1, 2], "a")
    spans, _ = spans_of(QUEUE, json_table(*values), (), Columns.VALUES)
    assert [spans.value(number) for number in spans.argument] == ["a", 1, (1, None), (1, 2), "a"]
    assert spans.argument[0] == spans.argument[4]
    with pytest.raises(TypeError):
        spans_of(MODELS["priority-queue"], json_table(*values), (), Columns.ORDERED_VALUES)


def test_the_least_integer_is_not_taken_for_null() -> None:
    spans, _ = spans_of(QUEUE, table([{"value": NONE}, {"value": 3}, {"value": None}], INTEGERS), (), Columns.VALUES)
    assert spans.argument.tolist() == [0, 1, NONE]
    assert spans.render(0) == str(NONE)


def test_what_failed_is_left_out_and_objects_come_by_name_in_order() -> None:
    rows = [
        (0, "invoke", "b", 1),
        (1, "invoke", "a", 2),
        (1, "ok", "a", 2),
        (0, "fail", "b", 1),
        (0, "invoke", "b", 3),
        (0, "info", "b", 3),
    ]
    events = [
        {"index": i, "time": i, "process": p, "type": t, "f": "enqueue", "key": k, "value": {"json": str(v)}}
        for i, (p, t, k, v) in enumerate(rows)
    ]
    written = object_rows(pa.Table.from_pylist(events[::-1], schema=history_schema(JSON)), buckets=1)
    found = {key: spans_of(QUEUE, own, (), Columns.VALUES)[0] for key, own in objects(written)}
    assert {key: (spans.start.tolist(), spans.end.tolist()) for key, spans in found.items()} == {
        "a": ([1], [2]),
        "b": ([4], [NEVER]),
    }
    assert found["a"].argument.tolist() == [2]
