"""Queues that move: the smallest final reads for each anomaly, and their near misses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.log.moves import MovesChecker
from checkers.log.rows import LOG_MESSAGES
from harness.record.excuse import Excuse
from harness.record.history import history_schema
from tests.references.history_language import parse_operation

MOVED = "0 ok move q0"
SEGMENTS = "1 ok final-segments q0 0:2 2:-1"
"""Up to offset 2, and from there on without an end."""


def judge(*lines: str, excuses: tuple[Excuse, ...] = ()) -> CheckerResult:
    rows = [{"index": i, "time": i, **parse_operation(line)} for i, line in enumerate(lines)]
    history = pa.Table.from_pylist(rows, schema=history_schema(LOG_MESSAGES))
    return MovesChecker().check(CheckRequest(history=history, excuses=excuses), InProcessEngine())


def read(*places: str) -> str:
    return f"2 ok final-poll q0 at=b1 {' '.join(places)}"


@pytest.mark.parametrize(
    ("segments", "places", "operations"),
    [
        (SEGMENTS, ("0:10", "1:11", "2:12", "3:13"), {}),
        # What the first segment lacks at its end, the second one does not begin with.
        (SEGMENTS, ("0:10", "2:12"), {}),
        (SEGMENTS, ("0:10", "1:11", "3:13"), {"offset-gap": (2,)}),
        (SEGMENTS, ("1:11", "2:12"), {"offset-gap": (2,)}),
        (SEGMENTS, ("0:10", "1:11", "2:12", "4:14"), {"offset-gap": (2,)}),
        ("1 ok final-segments q0 0:2 3:-1", ("0:10", "1:11", "3:13"), {}),
        ("1 ok final-segments q0 0:2 3:-1", ("0:10", "1:11", "2:12", "3:13"), {"stray-offset": (1, 2)}),
        ("1 ok final-segments q0 1:2 2:-1", ("0:10", "1:11", "2:12"), {"stray-offset": (1, 2)}),
        ("1 ok final-segments q0 0:3 2:-1", ("0:10", "1:11", "2:12"), {"segment-overlap": (1,)}),
        ("1 ok final-segments q0 0:-1 2:-1", ("0:10", "1:11", "2:12"), {"segment-overlap": (1,)}),
        (SEGMENTS, (), {}),
        ("1 ok final-segments q0 0:-1", ("0:10", "1:11"), {}),
    ],
)
def test_segments_follow_each_other_and_have_no_holes(
    segments: str, places: tuple[str, ...], operations: dict[str, tuple[int, ...]]
) -> None:
    result = judge(MOVED, segments, read(*places))
    found = {name: one.operations for name, summary in result.anomalies.items() for one in summary.examples}
    assert found == operations, result
    assert (result.verdict is Verdict.VALID) == (not operations)
    assert result.statistics == {"moves": 1, "segments": segments.count(":")}


def test_what_was_not_moved_or_not_read_proves_nothing() -> None:
    assert judge(SEGMENTS, read("0:10")).verdict is Verdict.UNKNOWN
    assert judge(MOVED.replace("ok", "fail"), SEGMENTS, read("0:10")).verdict is Verdict.UNKNOWN
    for rest in ((), (SEGMENTS.replace("ok", "info"), read("0:10"))):
        unread = judge(MOVED, *rest)
        assert unread.verdict is Verdict.UNKNOWN
        assert unread.reasons == ("nobody has read in the end which segments q0 has",)


def test_an_excuse_is_of_what_it_names() -> None:
    excuse = Excuse(anomalies=("offset-gap",), reason="truncated", from_ns=0, until_ns=1)
    gap = (MOVED, SEGMENTS, read("0:10", "1:11", "3:13"))
    assert judge(*gap, excuses=(excuse,)).verdict is Verdict.VALID
    overlapping = (MOVED, "1 ok final-segments q0 0:3 2:-1", read("0:10", "1:11", "2:12"))
    assert judge(*overlapping, excuses=(excuse,)).verdict is Verdict.INVALID
