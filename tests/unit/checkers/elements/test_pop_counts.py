"""What is counted of popped messages, and what says nothing because it was not told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult
from checkers.elements.pop import MS, POPPED, PopChecker
from checkers.in_process.engine import InProcessEngine
from harness.record.excuse import Excuse
from harness.record.history import history_schema
from tests.references.history_language import parse_history

EVERY_FATE = """source: -
    checker: pop
    verdict: invalid lost
    0 ok send - 1
    0 ok send - 2
    0 ok send - 3
    0 info send - 4
    3 fail send - 5
    3 ok send - 6
    3 ok send - 7
    1 ok pop - invisible=1 1*0 2*0 7*0
    1 ok ack - 1
    1 fail ack - 7
    1 ok pop - invisible=1 2*1
    1 ok pop - invisible=1 2*2
    1 ok pop - invisible=1 4*0
    1 ok ack - 4
    1 info ack - 6
    2 ok dead-letters - 3*0
    2 ok drain -
"""


def judge(rows: list[dict[str, Any]]) -> CheckerResult:
    numbered = [{"index": i, "time": i * 10_000_000, **row} for i, row in enumerate(rows)]
    history = pa.Table.from_pylist(numbered, schema=history_schema(POPPED))
    return PopChecker().check(CheckRequest(history=history), InProcessEngine())


def test_messages_are_counted_by_what_became_of_them() -> None:
    assert judge(parse_history(EVERY_FATE).rows).statistics == {
        "sent": 7,
        "acked": 5,
        "delivered": 4,
        "redelivered": 2,
        "acknowledged": 2,
        "dead letters": 1,
        "recovered": 1,
    }


TWICE = """source: -
    checker: pop
    verdict: valid
    0 ok send - 1
    1 ok pop - invisible=1 1*0
    1 ok pop - invisible=1 1*1
    1 ok ack - 1
    2 ok drain -
"""


@pytest.mark.parametrize(
    ("first", "again", "is_broken"),
    [(0, 0, True), (0, 1, False), (None, 0, False), (0, None, False), (None, None, False)],
)
def test_a_count_that_was_not_told_does_not_fail_to_rise(first: int | None, again: int | None, is_broken: bool) -> None:
    rows = parse_history(TWICE).rows
    for row, times in zip(
        [row for row in rows if row["type"] == "ok" and row["f"] == "pop"], (first, again), strict=True
    ):
        row["value"] = row["value"] | {"deliveries": [{"message": 1, "times": times}]}
    assert ("times-not-risen" in judge(rows).anomalies) is is_broken


TWICE_TOO_EARLY = """source: -
    checker: pop
    verdict: invalid redelivered-early
    0 ok send {0} 1
    0 ok send b 2
    1 ok pop - invisible=1000 1*0 2*0
    2 ok pop - invisible=1000 1*1 2*1
    1 ok ack - 1
    2 ok ack - 2
    2 ok drain -
"""


@pytest.mark.parametrize(
    ("key", "keys", "at_ms", "legal", "broken"),
    [
        ("a", (), 52, 2, 0),
        ("a", ("a",), 52, 1, 1),
        ("a", ("a", "b"), 52, 2, 0),
        ("a", ("c",), 52, 0, 2),
        ("-", ("c",), 52, 1, 1),
        ("a", ("a",), 38, 0, 2),
        ("a", ("a",), 75, 0, 2),
    ],
)
def test_an_excuse_is_for_messages_sent_with_its_keys_that_came_before_it_and_after_it(
    key: str, keys: tuple[str, ...], at_ms: int, legal: int, broken: int
) -> None:
    """Operations are 10 ms apart: the first pop begins at 40, the second at 60 and ends at 70."""
    rows = [
        {"index": i, "time": i * 10 * MS, **row}
        for i, row in enumerate(parse_history(TWICE_TOO_EARLY.format(key)).rows)
    ]
    history = pa.Table.from_pylist(rows, schema=history_schema(POPPED))
    one = Excuse(
        anomalies=("redelivered-early",), reason="a new leader", from_ns=at_ms * MS, until_ns=at_ms * MS, keys=keys
    )
    found = PopChecker().check(CheckRequest(history=history, excuses=(one,)), InProcessEngine())
    summary = found.anomalies["redelivered-early"]
    excused = summary if summary.legal else summary.excused
    assert (0 if excused is None else excused.count) == legal
    assert (0 if summary.legal else summary.count) == broken


OVERLAPPING = """source: -
    checker: pop
    verdict: invalid redelivered-early
    0 ok send a 1
    1 invoke pop - invisible=1000
    2 invoke pop - invisible=1000
    2 ok pop - invisible=1000 1*0
    1 ok pop - invisible=1000 1*0
    1 ok ack - 1
    2 ok drain -
"""


@pytest.mark.parametrize(("at_ms", "is_legal"), [(15, False), (25, True), (35, True), (45, True), (55, False)])
def test_two_deliveries_that_overlap_are_excused_whichever_may_have_come_first(at_ms: int, is_legal: bool) -> None:
    """The first pop goes on from 20 to 50 ms, the second from 30 to 40: it may have come before or after the other."""
    rows = [{"index": i, "time": i * 10 * MS, **row} for i, row in enumerate(parse_history(OVERLAPPING).rows)]
    history = pa.Table.from_pylist(rows, schema=history_schema(POPPED))
    moment = at_ms * MS
    one = Excuse(anomalies=("redelivered-early",), reason="a new leader", from_ns=moment, until_ns=moment)
    found = PopChecker().check(CheckRequest(history=history, excuses=(one,)), InProcessEngine())
    assert bool(found.anomalies["redelivered-early"].legal) is is_legal
