"""Jepsen's kafka workload becomes a log's transactions, and what consumers were told decides what their polls mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers.log.rows import LOG_MESSAGES
from harness.jepsen import Shape, convert
from harness.record.history import MalformedHistory, read_history
from workloads.log import WORKLOAD

SHAPE = Shape(value_type=LOG_MESSAGES, functions=WORKLOAD.functions)


def converted(tmp_path: Path, *operations: str) -> list[dict[str, Any]]:
    """Each reads `PROCESS :TYPE :F VALUE`, and perhaps more fields."""
    lines = []
    for operation in operations:
        process, kind, f, rest = operation.split(" ", 3)
        lines.append(f"{{:process {process}, :type {kind}, :f {f}, :value {rest}}}\n")
    (tmp_path / "h.edn").write_text("".join(lines))
    convert(tmp_path / "h.edn", tmp_path / "h.parquet", SHAPE)
    rows: list[dict[str, Any]] = read_history(tmp_path / "h.parquet").table().to_pylist()
    return rows


def polls(rows: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [
        (part["f"], part["key"], bool(part["repositioned"]))
        for row in rows
        for part in row["value"]["txn"] or ()
        if row["type"] == "ok" and part["f"] != "send"
    ]


def poll(messages: str, more: str = "", process: int = 0) -> tuple[str, str]:
    return f"{process} :invoke :poll [[:poll]]", f"{process} :ok :poll [[:poll {messages}]]{more}"


def call(f: str, value: str, kind: str = "ok", process: int = 0) -> tuple[str, str]:
    return f"{process} :invoke {f} {value}", f"{process} :{kind} {f} {value}"


def test_sends_and_polls_become_parts_of_transactions(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        "0 :invoke :txn [[:send 4 7] [:poll] [:send 5 8]]",
        "0 :ok :txn [[:send 4 [12 7]] [:poll {4 [[12 7] [nil 6]], 3 []}] [:send 5 [nil 8]]]",
        "1 :invoke :send [[:send 4 9]]",
        "1 :info :send [[:send 4 9]]",
    )
    assert [row["f"] for row in rows] == ["txn"] * 4
    asked, done = (
        [(part["f"], part["key"], part["message"], part["offset"], part["messages"]) for part in row["value"]["txn"]]
        for row in rows[:2]
    )
    assert asked == [("send", "4", 4000000007, None, None), ("send", "5", 5000000008, None, None)]
    read = [{"offset": 12, "message": 4000000007}, {"offset": None, "message": 4000000006}]
    assert done == [
        ("send", "4", 4000000007, 12, None),
        ("poll", "4", None, None, read),
        ("poll", "3", None, None, []),
        ("send", "5", 5000000008, None, None),
    ]


def test_keys_may_be_texts_of_digits(tmp_path: Path) -> None:
    to_beginning = call(":assign", '["4"]')[0], call(":assign", '["4"]')[1] + ", :seek-to-beginning? true"
    rows = converted(
        tmp_path,
        '1 :invoke :send [[:send "4" 7]]',
        '1 :ok :send [[:send "4" [0 7]]]',
        *to_beginning,
        *poll('{"4" [[0 7]]}'),
    )
    assert rows[1]["value"]["txn"][0]["message"] == 4000000007
    assert polls(rows) == [("final-poll", "4", True)]


def test_a_consumer_goes_on_where_it_was_in_queues_that_stay_assigned(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        *call(":assign", "[1 2]"),
        *poll("{1 [[0 1]], 2 [[0 1]]}"),
        *poll("{1 [[1 2]]}"),
        *call(":assign", "[2 3]"),
        *poll("{2 [[1 2]], 3 [[0 1]]}"),
        *call(":assign", "[1 2 3]"),
        *poll("{1 [[2 3]], 2 [[2 3]]}"),
    )
    assert polls(rows) == [
        *(("poll", "1", True), ("poll", "2", True)),
        ("poll", "1", False),
        *(("poll", "2", False), ("poll", "3", True)),
        *(("poll", "1", True), ("poll", "2", False)),
    ]


@pytest.mark.parametrize(
    "between",
    [
        call(":assign", "[1]", "fail"),
        ("0 :invoke :poll [[:poll]]", "0 :fail :poll [[:poll]]"),
        ("0 :invoke :txn [[:send 9 1] [:poll]]", "0 :fail :txn [[:send 9 1] [:poll {1 [[1 2]]}]]"),
        call(":crash", "nil", "fail"),
    ],
    ids=["failed-assign", "failed-poll", "failed-transaction", "crash"],
)
def test_what_may_have_moved_a_consumer_moves_it(tmp_path: Path, between: tuple[str, str]) -> None:
    rows = converted(tmp_path, *call(":assign", "[1]"), *poll("{1 [[0 1]]}"), *between, *poll("{1 [[1 2]]}"))
    assert polls(rows) == [("poll", "1", True), ("poll", "1", True)]


def test_failed_sends_and_questions_about_queues_move_nobody(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        *call(":assign", "[1]"),
        *poll("{1 [[0 1]]}"),
        "0 :invoke :send [[:send 1 5]]",
        "0 :fail :send [[:send 1 5]]",
        "0 :invoke :debug-topic-partitions [1]",
        "0 :ok :debug-topic-partitions {1 {:leader {:a 1}}}",
        *poll("{1 [[1 2]]}"),
    )
    assert polls(rows) == [("poll", "1", True), ("poll", "1", False)]


def test_subscribers_are_always_moved_until_they_are_assigned_queues(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        *call(":subscribe", "[1]"),
        *poll("{1 [[0 1]]}"),
        *poll("{1 [[1 2]]}"),
        *call(":assign", "[1]"),
        *poll("{1 [[2 3]]}"),
        *poll("{1 [[3 4]]}"),
    )
    assert [moved for _, _, moved in polls(rows)] == [True, True, True, False]


def test_queues_that_were_rebalanced_meanwhile_are_polled_anew(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        *call(":assign", "[1 2]"),
        *poll("{1 [[0 1]], 2 [[0 1]]}"),
        *poll("{1 [[1 2]], 2 [[1 2]]}", ", :rebalance-log [{:keys [1]}]"),
        *poll("{1 [[2 3]], 2 [[2 3]]}"),
        *poll("{1 [[3 4]], 2 [[3 4]]}", ", :rebalance-log [{:who :knows}]"),
    )
    moved = [moved for _, _, moved in polls(rows)]
    assert moved == [True, True, True, False, True, False, True, True]


def test_who_was_put_to_the_beginning_and_reads_on_makes_final_polls(tmp_path: Path) -> None:
    to_beginning = call(":assign", "[1]")[0], call(":assign", "[1]")[1] + ", :seek-to-beginning? true"
    rows = converted(
        tmp_path,
        *poll("{1 [[0 1]]}"),
        *to_beginning,
        *poll("{1 [[0 1]]}"),
        *poll("{1 [[1 2]], 2 [[0 1]]}"),
        "0 :invoke :poll [[:poll]]",
        "0 :fail :poll [[:poll]]",
        *poll("{1 [[2 3]]}"),
        *to_beginning,
        *call(":assign", "[1]"),
        *poll("{1 [[0 1]]}"),
    )
    assert polls(rows) == [
        ("poll", "1", True),
        ("final-poll", "1", True),
        *(("final-poll", "1", False), ("poll", "2", True)),
        ("poll", "1", True),
        ("poll", "1", True),
    ]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("0 :invoke :send [[:send :x 1]]", "keys and values of a log must be whole numbers, they are [:x 1]"),
        ('0 :invoke :send [[:send 1 "a"]]', "keys and values of a log must be whole numbers"),
        ("0 :invoke :send [[:send 1 1000000000]]", "values of a log must be at least 0 and less than 1000000000"),
        ("0 :invoke :txn [[:append 1 1]]", "a part of a transaction on a log must be [:send key value]"),
        ("0 :invoke :poll [[:poll {1 [5]}]]", "what a poll shows must be [offset value], it is 5"),
        ("0 :invoke :txn [{:f :send, :keys 1}]", "a part of a transaction has f, key, message"),
    ],
)
def test_what_is_no_part_is_refused(tmp_path: Path, operation: str, reason: str) -> None:
    with pytest.raises(MalformedHistory) as refused:
        converted(tmp_path, operation)
    assert reason in str(refused.value)
