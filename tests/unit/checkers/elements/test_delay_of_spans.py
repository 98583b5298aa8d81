"""The delay checker where sends say a span, deliveries say places, and a run had faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.elements.delay import MS, DelayChecker, Unwatched
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.excuse import Excuse
from harness.record.facts import RunFacts
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.history import history_schema
from workloads.delayed import DELAYED_ELEMENTS, TERMS


def row(time_ms: int, process: int, kind: str, f: str, **value: Any) -> dict[str, Any]:
    return {"time": time_ms * MS, "process": process, "type": kind, "f": f, "key": "q", "value": value}


def sent(message: int, call_ms: int, answer_ms: int, delay_ms: int) -> list[dict[str, Any]]:
    value = {"value": message, "delay_ms": delay_ms}
    return [row(call_ms, 0, "invoke", "enqueue", **value), row(answer_ms, 0, "ok", "enqueue", **value)]


def taken(time_ms: int, places: Mapping[int, int], f: str = "dequeue") -> list[dict[str, Any]]:
    """Place -> message."""
    value = {"values": list(places.values()), "places": list(places)}
    return [row(time_ms - 1, 1, "invoke", f), row(time_ms, 1, "ok", f, **value)]


def checked(tmp_path: Path, *parts: list[dict[str, Any]], excuses: Any = (), run: Any = None) -> CheckerResult:
    rows = sorted((row for part in parts for row in part), key=lambda row: row["time"])
    path = tmp_path / "history.parquet"
    numbered = [{"index": i, **row} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(DELAYED_ELEMENTS)), path)
    checker = DelayChecker(tolerance_ms=10, latest_ms=500, again_ms=2_000, terms=TERMS)
    request = CheckRequest(history=path, excuses=excuses, run=run)
    return check_history(request, {"delay": checker}, InProcessEngine())["delay"]


def anomalies(result: CheckerResult) -> dict[str, tuple[int, bool]]:
    return {name: (summary.count, bool(summary.legal)) for name, summary in result.anomalies.items()}


def faulty(start_ms: int, stop_ms: int, **facts: int) -> RunUnderCheck:
    window = FaultWindow(kind="kill", nodes=("b1",), start_ns=start_ms * MS, stop_ns=stop_ms * MS)
    return RunUnderCheck(facts=RunFacts(**facts), faults=FaultLog(windows=(window,)), recovers_within_s=1.0)


@pytest.mark.parametrize(
    ("taken_ms", "found"),
    [(1_089, {"delivered-early": (1, False)}), (1_090, {}), (1_800, {}), (1_801, {"delivered-late": (1, False)})],
)
def test_a_span_begins_between_the_call_and_the_answer(tmp_path, taken_ms, found):
    """Called at 100 and answered at 300, with a delay of a second."""
    assert anomalies(checked(tmp_path, sent(1, 100, 300, 1_000), taken(taken_ms, {0: 1}))) == found


@pytest.mark.parametrize(("taken_ms", "found"), [(5_800, {}), (5_801, {"delivered-late": (1, False)})])
def test_time_under_faults_and_for_recovery_is_not_late(tmp_path, taken_ms, found):
    """Due at 1,300; from 1,400 to 4,400 and a second more does not count."""
    run = faulty(1_400, 4_400)
    assert anomalies(checked(tmp_path, sent(1, 100, 300, 1_000), taken(taken_ms, {0: 1}), run=run)) == found


def test_nobody_looks_between_the_storm_and_the_final_reads(tmp_path):
    run = faulty(0, 1, healed_ns=1_700 * MS, final_from_ns=9_000 * MS)
    history = sent(1, 1_000, 1_100, 500), taken(9_200, {0: 1}, "drain")
    assert anomalies(checked(tmp_path, *history, run=run)) == {}
    assert anomalies(checked(tmp_path, *history)) == {"delivered-late": (1, False)}


def test_a_copy_that_comes_long_after_the_first_is_found_and_reading_one_twice_is_not(tmp_path):
    first = sent(1, 0, 10, 100), sent(2, 20, 30, 100), taken(150, {0: 1, 1: 2})
    again = taken(1_000, {1: 2, 2: 1}), taken(5_000, {0: 1, 1: 2})
    assert anomalies(checked(tmp_path, *first, *again)) == {}
    late = checked(tmp_path, *first, *again, taken(6_000, {3: 2, 4: 2}))
    assert anomalies(late) == {"delivered-again": (1, False)}
    assert "message 2 " in late.anomalies["delivered-again"].examples[0].because


def test_what_is_excused_is_excused_by_when_it_was_on_its_way(tmp_path):
    excuse = Excuse(anomalies=("delivered-early",), reason="a clock", from_ns=400 * MS, until_ns=450 * MS)
    early = sent(1, 100, 300, 1_000), taken(500, {0: 1})
    assert anomalies(checked(tmp_path, *early, excuses=(excuse,))) == {"delivered-early": (1, True)}
    later = Excuse(anomalies=("delivered-early",), reason="a clock", from_ns=600 * MS, until_ns=650 * MS)
    assert anomalies(checked(tmp_path, *early, excuses=(later,))) == {"delivered-early": (1, False)}


def test_how_late_it_is_remains_unknown_of_what_never_came_unless_that_is_legally_lost(tmp_path):
    gone = sent(1, 100, 300, 1_000), sent(2, 320, 330, 100), taken(450, {0: 2})
    excuse = Excuse(anomalies=("lost",), reason="it has expired", from_ns=0, until_ns=200 * MS)
    assert checked(tmp_path, *gone).verdict is Verdict.UNKNOWN
    assert checked(tmp_path, *gone, excuses=(excuse,)).verdict is Verdict.VALID
    younger = replace(excuse, until_ns=50 * MS)
    assert checked(tmp_path, *gone, excuses=(younger,)).verdict is Verdict.UNKNOWN


def test_spans_that_overlap_do_not_count_twice():
    unwatched = Unwatched.of([(50, 60), (10, 20), (15, 30)])
    times = np.array([0, 10, 15, 30, 40, 55, 60, 100])
    assert unwatched.counted(times).tolist() == [0, 10, 10, 10, 20, 30, 30, 70]
    assert Unwatched().counted(times).tolist() == times.tolist()
