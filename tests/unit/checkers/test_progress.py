"""Progress while faults last: what counts is a whole bound without a success of one kind, though clients asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.progress import Progress
from harness.record.excuse import Excuse
from harness.record.history import history_schema
from harness.record.steady_spans import SteadySpan

S = 1_000_000_000
SPAN = SteadySpan(from_ns=10 * S, until_ns=35 * S, healthy=frozenset("bc"), down=frozenset("a"), reached={})
Rows = list[tuple[float, str, str]]


def check(
    tmp_path: Path, rows: Rows, *demanded: SteadySpan, within_s: float | None = 20.0, excuses: tuple[Excuse, ...] = ()
) -> CheckerResult:
    """Rows of (time in s, type, f)."""
    table = pa.Table.from_pylist(
        [
            {"index": i, "time": round(time * S), "process": 0, "type": type_, "f": f}
            for i, (time, type_, f) in enumerate(sorted(rows))
        ],
        schema=history_schema(pa.struct([("value", pa.int64())])),
    )
    path = tmp_path / "h.parquet"
    pq.write_table(table, path, row_group_size=7)
    run = RunUnderCheck(required_ok={"send": 1}, demanded=demanded, serves_within_s=within_s)
    return Progress().check(CheckRequest(history=path, run=run, excuses=excuses), InProcessEngine())


def asked(from_s: float = 10.0, until_s: float = 35.0, ends: str = "fail", every_s: float = 1.0) -> Rows:
    """After one success long before."""
    rows: Rows = [(1.0, "invoke", "send"), (1.1, "ok", "send")]
    while from_s < until_s:
        rows += [(from_s, "invoke", "send"), (from_s + 0.5, ends, "send")]
        from_s += every_s
    return rows


@pytest.mark.parametrize("ends", ["fail", "info"])
def test_a_bound_without_any_success_is_no_progress(tmp_path: Path, ends: str) -> None:
    result = check(tmp_path, asked(ends=ends), SPAN)
    assert result.verdict is Verdict.INVALID
    (anomaly,) = result.anomalies["no-progress"].examples
    assert anomaly.because == (
        "no send succeeded from 10.0 s to 35.0 s, although since 10.0 s b, c were healthy and connected, and the "
        "system declares that these serve within 20 s"
    )


def test_one_success_early_enough_and_late_enough_is_progress(tmp_path: Path) -> None:
    result = check(tmp_path, [*asked(), (20.2, "ok", "send")], SPAN)
    assert result.verdict is Verdict.VALID
    assert result.statistics == {"demanded_s": 25.0, "longest_without_success_s": {"send": 14.0}}


@pytest.mark.parametrize(
    ("time_s", "verdict"), [(10.2, Verdict.INVALID), (14.9, Verdict.INVALID), (15.1, Verdict.VALID)]
)
def test_what_was_on_its_way_when_the_faults_began_is_not_enough(
    tmp_path: Path, time_s: float, verdict: Verdict
) -> None:
    assert check(tmp_path, [*asked(), (time_s, "ok", "send")], SPAN).verdict is verdict


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(time, type_, "poll") for time, type_, _ in asked()],
        asked(until_s=25.0),
        [*asked(until_s=20.0), *asked(from_s=24.0)],
        asked(every_s=3.0),
        [row for row in asked() if row[1] != "ok"],
    ],
    ids=["nothing", "another kind", "no longer", "not all the time", "too rarely", "nothing ever succeeded"],
)
def test_what_nobody_asked_for_all_the_time_or_ever_got_is_not_missed(tmp_path: Path, rows: Rows) -> None:
    assert check(tmp_path, rows, SPAN).verdict is Verdict.VALID


def test_nothing_is_demanded_of_who_promises_nothing(tmp_path: Path) -> None:
    for demanded, within_s in (((), 20.0), ((SPAN,), None), ((SPAN,), 26.0)):
        assert check(tmp_path, asked(), *demanded, within_s=within_s).verdict is Verdict.VALID


def test_what_may_stand_still_is_told_and_excused(tmp_path: Path) -> None:
    excuse = Excuse(anomalies=("no-progress",), reason="a slave is parted", from_ns=20 * S, until_ns=21 * S)
    result = check(tmp_path, asked(), SPAN, excuses=(excuse,))
    assert (result.verdict, result.anomalies["no-progress"].legal) == (Verdict.VALID, "a slave is parted")
