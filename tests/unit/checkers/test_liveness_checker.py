"""Liveness: what counts is success inside the window, of every kind, however the rows are split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.liveness import Liveness
from harness.record.excuse import Excuse
from harness.record.facts import RunFacts
from harness.record.fault_log import QUORUM, FaultLog, FaultWindow
from harness.record.history import history_schema

BOUND_S = 100e-9
QUORUM_HELD = FaultLog(windows=(FaultWindow(kind="kill", package=QUORUM, start_ns=100, stop_ns=200),))
WINDOW = RunUnderCheck(faults=QUORUM_HELD, required_ok={"send": 1, "poll": 1})


def _check(
    path: Path,
    rows: list[tuple[int, str, str]],
    run: RunUnderCheck | None,
    excuses: tuple[Excuse, ...] = (),
    bound_s: float = BOUND_S,
) -> CheckerResult:
    """Rows of (time, type, f)."""
    table = pa.Table.from_pylist(
        [{"index": i, "time": time, "process": 0, "type": type_, "f": f} for i, (time, type_, f) in enumerate(rows)],
        schema=history_schema(pa.struct([("value", pa.int64())])),
    )
    pq.write_table(table, path, row_group_size=2)
    request = CheckRequest(history=path, run=run, excuses=excuses)
    return Liveness(bound_s).check(request, InProcessEngine())


GOOD = [(90, "invoke", "send"), (100, "ok", "send"), (150, "invoke", "poll"), (200, "ok", "poll")]


def test_every_kind_succeeded_within_the_window(tmp_path: Path) -> None:
    result = _check(tmp_path / "h.parquet", GOOD, WINDOW)
    assert result.verdict is Verdict.VALID
    assert result.statistics["succeeded"] == {"poll": 1, "send": 1}


@pytest.mark.parametrize(
    "last",
    [(201, "ok", "poll"), (200, "fail", "poll"), (200, "info", "poll"), (200, "ok", "send")],
    ids=["too late", "failed", "indefinite", "of another kind"],
)
def test_no_success_of_one_kind_within_the_window_is_no_progress(tmp_path: Path, last: tuple[int, str, str]) -> None:
    result = _check(tmp_path / "h.parquet", [*GOOD[:3], last], WINDOW)
    assert result.verdict is Verdict.INVALID
    (anomaly,) = result.anomalies["no-progress"].examples
    assert anomaly.details["f"] == "poll"


def test_what_may_stand_still_is_told_and_excused(tmp_path: Path) -> None:
    def excuse(until_ns: int) -> Excuse:
        return Excuse(anomalies=("no-progress",), reason="a slave is parted", from_ns=0, until_ns=until_ns)

    early = _check(tmp_path / "h.parquet", GOOD[:3], WINDOW, (excuse(99),))
    assert early.verdict is Verdict.INVALID
    result = _check(tmp_path / "h.parquet", GOOD[:3], WINDOW, (excuse(150),))
    assert result.verdict is Verdict.VALID
    assert (result.anomalies["no-progress"].count, result.anomalies["no-progress"].legal) == (1, "a slave is parted")


def test_what_nobody_tried_within_the_window_is_unknown(tmp_path: Path) -> None:
    result = _check(tmp_path / "h.parquet", GOOD[:2], WINDOW)
    assert (result.verdict, result.anomalies) == (Verdict.UNKNOWN, {})
    assert result.reasons == ("no poll was tried after all but spare nodes had healed",)


def test_nodes_that_could_not_be_healed_leave_it_open(tmp_path: Path) -> None:
    rows = [*GOOD[:3], (200, "fail", "poll")]
    (held,) = QUORUM_HELD.windows
    rot = FaultWindow(kind="bit-rot", package="disk", nodes=("b1",), start_ns=10, stop_ns=20)
    damaged = replace(WINDOW, faults=FaultLog(windows=(rot, held)), lasting_damage=("bit-rot",))
    ended = replace(WINDOW, facts=RunFacts(panics={"b1": "its disk is harmed"}))
    for run in (damaged, ended):
        result = _check(tmp_path / "h.parquet", rows, run)
        assert (result.verdict, result.anomalies) == (Verdict.UNKNOWN, {})
        assert result.reasons == ("no poll succeeded, but b1 could not be healed",)


def test_a_healing_too_late_for_the_bound_demands_nothing(tmp_path: Path) -> None:
    late = FaultLog(windows=(FaultWindow(kind="kill", package=QUORUM, start_ns=120, stop_ns=200),))
    result = _check(tmp_path / "h.parquet", [*GOOD[:3], (200, "fail", "poll")], replace(WINDOW, faults=late))
    assert (result.verdict, result.anomalies) == (Verdict.UNKNOWN, {})
    assert "only 8e-08 s before the end" in result.reasons[0]


def test_nine_tenths_of_the_bound_are_enough_to_demand_progress(tmp_path: Path) -> None:
    s = 1_000_000_000
    rows = [(2 * s, "invoke", "send"), (3 * s, "fail", "send")]
    for start_ns, verdict in ((s, Verdict.INVALID), (s + 1, Verdict.UNKNOWN)):
        held = FaultLog(windows=(FaultWindow(kind="kill", package=QUORUM, start_ns=start_ns, stop_ns=10 * s),))
        run = RunUnderCheck(faults=held, required_ok={"send": 1})
        assert _check(tmp_path / "h.parquet", rows, run, bound_s=10.0).verdict is verdict


def test_success_before_the_window_does_not_count(tmp_path: Path) -> None:
    rows = [(90, "invoke", "send"), (99, "ok", "send"), (101, "invoke", "send"), *GOOD[2:]]
    assert _check(tmp_path / "h.parquet", rows, WINDOW).anomalies["no-progress"].count == 1


def test_a_run_that_did_not_come_so_far_is_unknown(tmp_path: Path) -> None:
    (window,) = QUORUM_HELD.windows
    never_stopped = FaultLog(windows=(replace(window, is_stopped=False),))
    for run in (None, RunUnderCheck(required_ok={"send": 1}), replace(WINDOW, faults=never_stopped)):
        assert _check(tmp_path / "h.parquet", GOOD, run).verdict is Verdict.UNKNOWN
