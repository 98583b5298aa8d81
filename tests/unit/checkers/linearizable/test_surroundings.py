"""What surrounds an operation that fits nowhere: what was open meanwhile, what could have explained it, and how far an
order comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.evidence.surroundings import SHOWN_CANDIDATES, SHOWN_OPERATIONS
from checkers.linearizable.objects import MODELS
from harness.record.history import history_schema

JSON = pa.struct([pa.field("json", pa.string())])
INTEGERS = pa.struct([pa.field("value", pa.int64())])

Row = tuple[int, str, str, Any]
"""Process, type, f, value."""

REGISTERS = [("register", INTEGERS), ("register", JSON), ("cas-register", JSON)]


def done(process: int, f: str, argument: Any, result: Any) -> list[Row]:
    return [(process, "invoke", f, argument), (process, "ok", f, result)]


def details(directory: Path, model: str, events: list[Row], value_type: pa.StructType = JSON) -> dict[str, Any]:
    """Of the one anomaly of these events."""
    rows = [
        {"index": number, "time": number, "process": process, "type": kind, "f": f, "key": "k"}
        | {"value": {"json": json.dumps(value)} if value_type is JSON else {"value": value}}
        for number, (process, kind, f, value) in enumerate(events)
    ]
    path = directory / "history.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(value_type)), path)
    found = Linearizable(MODELS[model]).check(CheckRequest(history=path), InProcessEngine())
    [anomaly] = found.anomalies["nonlinearizable"].examples
    return dict(anomaly.details)


def candidates(details: dict[str, Any]) -> list[tuple[int | None, str]]:
    return [(one["operation"], one["why_not"]) for one in details["candidates"]["operations"]]


@pytest.mark.parametrize(("model", "value_type"), REGISTERS)
def test_a_stale_read_is_explained_by_the_overwritten_write_the_open_write_and_all_orders_until_then(
    tmp_path: Path, model: str, value_type: pa.StructType
) -> None:
    events = done(0, "write", 1, 1) + done(0, "write", 2, 2) + done(1, "read", None, 2)
    events += [(2, "invoke", "read", None), (3, "invoke", "write", 5), (2, "ok", "read", 1), (3, "info", "write", 5)]
    shown = details(tmp_path, model, [*events, *done(0, "read", None, 2)], value_type)
    assert shown["failing"] == {"operation": 6, "completed": 8, "what": "read that returned 1"}
    open_write = {"operation": 7, "completed": None, "what": "write 5"}
    assert shown["concurrent"] == {"count": 1, "operations": [open_write]}
    overwritten = "write 2 (operation 2, completed by 3) came after it, and had completed before this read began"
    assert candidates(shown) == [(0, overwritten)]
    [prefix] = shown["longest_prefixes"]
    assert [(one["operation"], one["what"], one["state"]) for one in prefix["operations"]] == [
        (0, "write 1", "1"),
        (2, "write 2", "2"),
        (4, "read that returned 2", "2"),
    ]


@pytest.mark.parametrize(("model", "value_type"), REGISTERS)
def test_a_write_of_unknown_outcome_that_was_seen_and_seen_gone_does_not_explain_a_later_read(
    tmp_path: Path, model: str, value_type: pa.StructType
) -> None:
    events = [(0, "invoke", "write", 1), (0, "info", "write", 1), *done(1, "read", None, 1)]
    events += done(2, "write", 2, 2) + done(1, "read", None, 2) + done(1, "read", None, 1)
    shown = details(tmp_path, model, events, value_type)
    gone = "write 2 (operation 4, completed by 5) came after it, and had completed before this read began"
    assert candidates(shown) == [(0, gone)]


@pytest.mark.parametrize(("model", "value_type"), REGISTERS)
def test_a_value_never_written_has_no_candidates_and_one_written_later_says_so(
    tmp_path: Path, model: str, value_type: pa.StructType
) -> None:
    never = details(tmp_path, model, done(0, "write", 1, 1) + done(1, "read", None, 9), value_type)
    assert never["candidates"] == {"count": 0, "operations": [], "sought": "9"}
    later = details(tmp_path, model, done(1, "read", None, 9) + done(0, "write", 9, 9), value_type)
    assert candidates(later) == [(2, "it began only when read had completed")]


@pytest.mark.parametrize(("model", "value_type"), REGISTERS)
def test_a_read_of_null_may_be_of_what_the_register_held_at_first(
    tmp_path: Path, model: str, value_type: pa.StructType
) -> None:
    shown = details(tmp_path, model, done(0, "write", 1, 1) + done(1, "read", None, None), value_type)
    assert shown["failing"]["what"] == "read that returned null"
    overwritten = "write 1 (operation 0, completed by 1) came after it, and had completed before this read began"
    assert candidates(shown) == [(None, overwritten)]
    assert shown["candidates"]["operations"][0]["what"] == "what it held at first: null"


@pytest.mark.parametrize(("model", "put", "take"), [("fifo-queue", "enqueue", "dequeue"), ("stack", "push", "pop")])
def test_what_was_taken_cannot_be_taken_again(tmp_path: Path, model: str, put: str, take: str) -> None:
    events = done(0, put, 1, 1) + done(1, take, None, 1) + done(2, take, None, 1)
    shown = details(tmp_path, model, events)
    assert candidates(shown) == [(0, f"{take} that returned 1 (operation 2, completed by 3) took it")]


def test_an_element_out_of_turn_is_explained_by_the_element_whose_turn_it_is(tmp_path: Path) -> None:
    events = done(0, "enqueue", 1, 1) + done(0, "enqueue", 2, 2) + done(1, "dequeue", None, 2)
    shown = details(tmp_path, "fifo-queue", events)
    assert candidates(shown) == [
        (2, "the longest order ends in the state [1, 2], where this dequeue would have returned 1")
    ]


@pytest.mark.parametrize(
    ("model", "events", "expected"),
    [
        ("map", done(0, "put", "a", "a") + done(0, "put", "b", "b") + done(1, "get", None, "a"), [0]),
        ("set", done(0, "add", 1, 1) + done(0, "remove", 1, 1) + done(1, "contains", 1, True), [0]),
        ("mutex", done(0, "acquire", None, None) + done(1, "acquire", None, None), [None]),
        ("fenced-lock", done(0, "acquire", None, 1) + done(1, "acquire", None, 2), [None]),
        ("priority-queue", done(0, "enqueue", 1, 1) + done(0, "enqueue", 2, 2) + done(1, "dequeue", None, 2), [2]),
        ("unordered-queue", done(0, "enqueue", 1, 1) + done(1, "dequeue", None, None), [None]),
    ],
)
def test_every_kind_of_object_shows_an_order_and_a_reason(
    tmp_path: Path, model: str, events: list[Row], expected: list[int | None]
) -> None:
    shown = details(tmp_path, model, events)
    assert [operation for operation, _ in candidates(shown)] == expected
    assert all(why_not for _, why_not in candidates(shown))
    assert shown["longest_prefixes"][0]["operations"]


@pytest.mark.parametrize(
    ("model", "events"),
    [
        ("counter", done(0, "add", 1, 1) + done(1, "read", None, 9)),
        ("set", done(0, "add", 1, 1) + done(1, "read", None, [])),
        ("append-log", done(0, "append", 1, 1) + done(1, "read", None, [1, 2])),
        ("multi-register", done(0, "txn", [["w", "x", 1]], [["w", "x", 1]]) + done(1, "txn", [], [["r", "x", 2]])),
    ],
)
def test_where_no_single_operation_explains_an_answer_an_order_is_still_shown(
    tmp_path: Path, model: str, events: list[Row]
) -> None:
    assert details(tmp_path, model, events)["longest_prefixes"][0]["operations"]


@pytest.mark.parametrize(("model", "value_type"), REGISTERS)
def test_counts_are_exact_and_what_is_shown_is_bounded(tmp_path: Path, model: str, value_type: pa.StructType) -> None:
    events = [event for _ in range(12) for event in done(0, "write", 1, 1) + done(0, "write", 2, 2)]
    events += [(process, "invoke", "write", 100 + process) for process in range(10, 40)]
    shown = details(tmp_path, model, [*events, *done(1, "read", None, 1)], value_type)
    assert shown["concurrent"]["count"] == 30
    assert len(shown["concurrent"]["operations"]) == SHOWN_OPERATIONS
    assert shown["candidates"]["count"] == 12
    assert len(shown["candidates"]["operations"]) == SHOWN_CANDIDATES
    prefix = shown["longest_prefixes"][0]
    assert len(prefix["operations"]) == len(prefix["order"]) == SHOWN_OPERATIONS
    assert prefix["left_out"] >= 4


def test_who_read_a_whole_set_does_not_say_that_one_element_was_taken_out(tmp_path: Path) -> None:
    events = [*done(0, "add", 1, 1), (2, "invoke", "remove", 1), (2, "info", "remove", 1)]
    events += done(0, "read", None, []) + done(1, "contains", 1, True)
    instead = "the longest order ends in the state {}, where this contains would have returned false"
    assert candidates(details(tmp_path, "set", events)) == [(0, instead)]


def test_states_are_followed_from_the_first_operation_on_though_only_the_last_are_shown(tmp_path: Path) -> None:
    adds = [event for _ in range(SHOWN_OPERATIONS + 3) for event in done(0, "add", 1, 1)]
    [prefix] = details(tmp_path, "counter", [*adds, *done(1, "read", None, 7)])["longest_prefixes"]
    assert [one["state"] for one in prefix["operations"]] == [str(4 + number) for number in range(SHOWN_OPERATIONS)]


@pytest.mark.parametrize(("model", "value_type"), REGISTERS)
def test_a_value_that_only_failed_writes_could_have_written_names_these_as_candidates(
    tmp_path: Path, model: str, value_type: pa.StructType
) -> None:
    events = [*done(0, "write", 1, 1), (0, "invoke", "write", 9), (2, "invoke", "write", 8), (0, "fail", "write", 9)]
    events += [(2, "fail", "write", 8), (3, "invoke", "read", None), (3, "fail", "read", None)]
    shown = details(tmp_path, model, [*events, *done(1, "read", None, 9)], value_type)
    assert candidates(shown) == [(2, "it failed, so it certainly did not happen")]
    assert shown["candidates"]["operations"][0]["what"] == "write 9"
    assert shown["candidates"]["operations"][0]["completed"] == 4
    assert shown["candidates"]["sought"] == "9"


def test_a_failed_cas_to_the_value_is_a_candidate_and_an_element_that_looks_like_it_is_none(tmp_path: Path) -> None:
    failed = [(0, "invoke", "cas", [1, 9]), (0, "fail", "cas", [1, 9])]
    shown = details(tmp_path, "cas-register", [*done(0, "write", 1, 1), *failed, *done(1, "read", None, 9)])
    assert [one["what"] for one in shown["candidates"]["operations"]] == ["cas [1, 9]"]
    failed = [(0, "invoke", "enqueue", [1, 9]), (0, "fail", "enqueue", [1, 9])]
    shown = details(tmp_path, "fifo-queue", [*failed, *done(1, "dequeue", None, 9)])
    assert shown["candidates"]["operations"] == []
