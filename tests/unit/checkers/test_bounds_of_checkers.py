"""Where a checker follows or keeps only so much: what it leaves out is UNKNOWN, or it makes no difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.availability.checker import QUANTILES, statistics_of
from checkers.faults import Faults
from checkers.in_process.engine import InProcessEngine
from harness.record.fault_log import FaultWindow
from stormproof.session.check_spec import checker_for
from tests.references.history_language import parse_history

HISTORIES = Path(__file__).parents[2] / "histories"


def judge(text: str, directory: Path) -> CheckerResult:
    written = parse_history(text)
    history = written.write(directory / "history.parquet")
    return checker_for(written.checker, written.options).check(CheckRequest(history=history), InProcessEngine())


OVERWRITTEN = """source: -
    checker: causal
    verdict: invalid overwritten-read
    0 ok write SMALL 1
    0 ok write SMALL 2
    1 ok read SMALL 2
    1 ok read SMALL 1
    0 ok write LARGE 1
    0 ok write LARGE 2
    1 ok read LARGE 2
    1 ok read LARGE 2
    1 ok read LARGE 1
"""
"""Two sessions are at each object: 8 cells are enough for the small one, 10 for the large one."""


@pytest.mark.parametrize(("small", "large"), [("x", "y"), ("y", "x")])
@pytest.mark.parametrize(("cells", "found", "left_out"), [(10, 2, 0), (8, 1, 3), (7, 0, 5)])
def test_objects_with_too_much_at_them_to_follow_causes_are_not_judged(
    small: str, large: str, cells: int, found: int, left_out: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.causal.checker.CELLS", cells)
    result = judge(OVERWRITTEN.replace("SMALL", small).replace("LARGE", large), tmp_path)
    reason = f"{left_out} reads are of objects with too many operations and processes"
    assert result.reasons == ((reason,) if left_out else ())
    assert {name: summary.count for name, summary in result.anomalies.items()} == (
        {"overwritten-read": found} if found else {}
    )
    assert result.verdict is (Verdict.INVALID if found else Verdict.UNKNOWN)


def test_who_is_over_is_forgotten_where_many_consume_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.consumption.queues.PROCESSES_KEPT", 0)
    assert set(judge((HISTORIES / "consumption" / "overlap.history").read_text(), tmp_path).anomalies) == {"overlap"}


def test_faults_that_are_not_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.availability.checker.FAULTS_LISTED", 2)
    windows = [FaultWindow(kind="kill", start_ns=number, stop_ns=number + 1) for number in range(3)]
    outage = {"f": "read", "by": 0, "outages": 1, "unfinished": 0, "max_ns": 5, "longest_unfinished_ns": -1}
    rows = [{"fault": number, **outage, **dict.fromkeys(QUANTILES, 5)} for number in range(3)]
    for listed, left_out in ((rows[:2], None), (rows, 1)):
        statistics = statistics_of(listed, Faults.of(windows), None)
        assert [fault["start_ns"] for fault in statistics["faults"]] == [0, 1]
        assert statistics.get("faults_left_out") == left_out
