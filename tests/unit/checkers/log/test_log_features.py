"""Batches, filters and keys of a log: the smallest histories for each anomaly, and those that come near."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.log.features import FeaturesChecker
from checkers.log.rows import LOG_MESSAGES
from harness.record.excuse import Excuse
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.history import history_schema

Row = dict[str, Any]
LOSS = Excuse(anomalies=("lost-write",), reason="a disk was lost", from_ns=0, until_ns=1)


def at(*places: tuple[int, int]) -> list[Row]:
    return [{"offset": offset, "message": message} for offset, message in places]


def operation(
    f: str, value: Row | None, asked: Row | None = None, *, node: str | None = None, end: str = "ok"
) -> list[Row]:
    base = {"f": f, "key": "q", "node": node}
    return [{**base, "type": "invoke", "value": asked}, {**base, "type": end, "value": value}]


def batch(*messages: int, end: str = "ok") -> list[Row]:
    parts = [{"f": "send", "key": "q", "message": message} for message in messages]
    return operation("send-batch", {"txn": parts}, {"txn": parts}, end=end)


def by_tag(tag: int, first: int, following: int, *places: tuple[int, int], final: bool = True) -> list[Row]:
    value = {"tag": tag, "resumed": first, "offset": following, "messages": at(*places)}
    return operation("final-filtered-poll" if final else "filtered-poll", value, {"tag": tag}, node="b1")


def look_up(message: int, *places: tuple[int, int]) -> list[Row]:
    return operation("final-look-up", {"message": message, "messages": at(*places)}, {"message": message}, node="b1")


def final(*places: tuple[int, int], caught_up: bool = True) -> list[Row]:
    read = operation("final-poll", {"messages": at(*places)}, node="b1")
    return [*read, *operation("caught-up", {"offset": 9}, node="b1", end="ok" if caught_up else "fail")]


def judge(*operations: list[Row], excuses: tuple[Excuse, ...] = (), run: RunUnderCheck | None = None) -> CheckerResult:
    rows = [
        {"index": index, "time": index, "process": 0, **row}
        for index, row in enumerate(row for rows in operations for row in rows)
    ]
    history = pa.Table.from_pylist(rows, schema=history_schema(LOG_MESSAGES))
    return FeaturesChecker(tags=2).check(CheckRequest(history=history, excuses=excuses, run=run), InProcessEngine())


def found(result: CheckerResult) -> dict[str, int]:
    return {name: summary.count for name, summary in result.anomalies.items()}


LOG = final((0, 0), (1, 1), (2, 2), (3, 5))


@pytest.mark.parametrize(
    ("operations", "anomalies"),
    [
        ([batch(0, 1), LOG], {}),
        ([batch(7, 9), LOG], {}),
        ([batch(0, 7), LOG], {"torn-batch": 1}),
        ([batch(7, 2, end="info"), LOG], {"torn-batch": 1}),
        ([batch(0, 7), final((0, 0), caught_up=False)], {}),
        ([by_tag(0, 0, 4, (0, 0), (2, 2)), LOG], {}),
        ([by_tag(0, 0, 2, (0, 0)), LOG], {}),
        ([by_tag(0, 0, 4, (0, 0)), LOG], {"filtered-skip": 1}),
        ([by_tag(1, 0, 9), LOG], {"filtered-skip": 2}),
        ([by_tag(1, 0, 4, (1, 1), (2, 2), (3, 5)), LOG], {"foreign-message": 1}),
        ([by_tag(1, 2, 4, (1, 1), (3, 5)), LOG], {"foreign-message": 1}),
        ([by_tag(0, 0, 4, (0, 0), final=False), LOG], {"filtered-skip": 1}),
        ([look_up(2, (2, 2)), LOG], {}),
        ([look_up(8), LOG], {}),
        ([look_up(2), LOG], {"key-not-found": 1}),
        ([look_up(2, (3, 2)), LOG], {"key-misleads": 1, "key-not-found": 1}),
        ([look_up(8, (3, 8)), LOG], {"key-misleads": 1}),
        ([look_up(2, (2, 2), (3, 5)), LOG], {"key-misleads": 1}),
    ],
)
def test_what_is_broken_is_named(operations: list[list[Row]], anomalies: dict[str, int]) -> None:
    result = judge(*operations)
    assert found(result) == anomalies
    assert result.verdict is (Verdict.INVALID if anomalies else Verdict.VALID)


def test_where_messages_may_legally_be_lost_polls_of_the_storm_prove_no_skip() -> None:
    of_the_storm, in_the_end = (by_tag(0, 0, 4, (0, 0), final=final) for final in (False, True))
    assert found(judge(of_the_storm, LOG, excuses=(LOSS,))) == {}
    assert found(judge(in_the_end, LOG, excuses=(LOSS,))) == {"filtered-skip": 1}
    assert found(judge(batch(0, 7), LOG, excuses=(LOSS,))) == {"torn-batch": 1}


@pytest.mark.parametrize(
    ("name", "rows"),
    [("torn-batch", batch(0, 7)), ("filtered-skip", by_tag(0, 0, 4, (0, 0))), ("key-not-found", look_up(2))],
)
def test_what_is_seen_of_messages_that_expire_is_legal_where_an_excuse_names_it(name: str, rows: list[Row]) -> None:
    expired = replace(LOSS, anomalies=(name,))
    result = judge(rows, LOG, excuses=(LOSS, expired))
    assert result.verdict is Verdict.VALID
    assert result.anomalies[name].legal
    misleads = judge(look_up(8, (3, 8)), LOG, excuses=(expired,))
    assert misleads.verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("kind", "node", "is_believed"),
    [
        ("short-files", "b1", False),
        ("short-files", "b2", True),
        ("bit-rot", "b2", False),
        ("kill", "b1", True),
    ],
)
def test_nodes_with_damaged_disks_prove_nothing(kind: str, node: str, is_believed: bool) -> None:
    struck = FaultLog(windows=(FaultWindow(kind=kind, nodes=(node,), start_ns=0, stop_ns=1),))
    run = RunUnderCheck(faults=struck, contagious=("bit-rot",), lasting_damage=("bit-rot", "short-files"))
    for shown in (by_tag(0, 0, 4, (0, 0)), look_up(2), by_tag(1, 0, 4, (1, 1), (2, 2), (3, 5))):
        assert bool(found(judge(shown, LOG, run=run))) == is_believed
    assert found(judge(batch(0, 7), LOG, run=run)) == {"torn-batch": 1}


def test_an_anomaly_says_which_operation_shows_it_and_why() -> None:
    (example,) = judge(by_tag(0, 0, 4, (0, 0)), LOG).anomalies["filtered-skip"].examples
    assert (example.key, example.operations) == ("q", (1,))
    assert example.because == "a poll for tag 0 from 0 to 4 at b1 was not given message 2 at 2"
