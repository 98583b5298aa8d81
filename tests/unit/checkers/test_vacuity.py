"""A pass is worth something only where enough happened: in the storm, by the nemesis, and of what could contradict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.evidence import Evidence, any_ok
from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import AnomalySummary, CheckerResult, Vacuous, Verdict, accepted, judged_as
from checkers.in_process.engine import InProcessEngine
from checkers.vacuity import Vacuity
from harness.record.facts import RunFacts
from harness.record.fault_log import QUORUM, FaultLog, FaultWindow
from harness.record.history import history_schema

VALUE = pa.struct([pa.field("value", pa.int64())])

ROWS = [
    (0, 0, "invoke", "read", "x"),
    (5, 1, "invoke", "write", "x"),
    (40, 0, "ok", "read", "x"),
    (45, -1, "info", "start-kill", None),
    (50, 0, "invoke", "read", "x"),
    (60, 0, "fail", "read", "x"),
    (70, 0, "invoke", "read", "y"),
    (90, 1, "info", "write", "x"),
    (1070, 0, "ok", "read", "y"),
]


def history(path: Path, rows: list[tuple[int, int, str, str, str | None]], row_group_size: int = 1_000) -> Path:
    """Rows of (time, process, type, f, key)."""
    table = pa.Table.from_pylist(
        [
            {"index": i, "time": time, "process": process, "type": kind, "f": f, "key": key}
            for i, (time, process, kind, f, key) in enumerate(rows)
        ],
        schema=history_schema(VALUE),
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


STORM_ENDED = RunFacts(final_from_ns=1_000)
STRUCK = FaultWindow(kind="kill", start_ns=10, stop_ns=20)


def check(path: Path, run: RunUnderCheck | None = None, evidence: tuple[Evidence, ...] = ()) -> CheckerResult:
    vacuity = Vacuity(subject="model x", evidence=evidence)
    return vacuity.check(CheckRequest(history=path, run=run), InProcessEngine())


def test_too_few_successes_in_the_storm_make_it_unknown(tmp_path: Path) -> None:
    path = history(tmp_path / "h.parquet", ROWS)
    assert check(path, RunUnderCheck(required_ok={"read": 2})).verdict is Verdict.VALID
    result = check(path, RunUnderCheck(required_ok={"read": 2}, facts=STORM_ENDED))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == ("too little happened: 1 read succeeded in the storm, 2 are required",)
    at_its_end = RunUnderCheck(required_ok={"read": 2}, facts=RunFacts(final_from_ns=1_070))
    assert check(path, at_its_end).reasons == result.reasons
    assert check(path, RunUnderCheck(required_ok={"never": 1})).verdict is Verdict.UNKNOWN


def test_too_small_a_share_of_successes_in_the_storm_makes_it_unknown(tmp_path: Path) -> None:
    path = history(tmp_path / "h.parquet", ROWS)
    assert check(path, RunUnderCheck(required_share={"read": 0.6, "never": 0.5})).verdict is Verdict.VALID
    result = check(path, RunUnderCheck(required_share={"read": 0.34}, facts=STORM_ENDED))
    assert result.verdict is Verdict.UNKNOWN
    (reason,) = result.reasons
    assert reason == "too little happened: 1 of 3 read succeeded in the storm, which is 33.3%; 34% are required"
    none = check(path, RunUnderCheck(required_share={"write": 0.01}))
    assert none.reasons == ("too little happened: 0 of 1 write succeeded in the storm, which is 0.0%; 1% are required",)


@pytest.mark.parametrize("run", [RunUnderCheck(required_ok={"read": 2}), RunUnderCheck(required_share={"read": 0.6})])
def test_what_is_required_is_counted_to_the_end_whatever_was_found_before(
    run: RunUnderCheck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 3)
    assert check(history(tmp_path / "h.parquet", ROWS), run, any_ok("read")).reasons == ()


def test_at_most_five_faults_that_were_not_healed_are_named(tmp_path: Path) -> None:
    path = history(tmp_path / "h.parquet", ROWS)
    named = tuple(f"kill b{number}" for number in range(1, 7))
    five, more = (
        "kill b1; kill b2; kill b3; kill b4; kill b5",
        "kill b1; kill b2; kill b3; kill b4; kill b5, and 1 more",
    )
    for faults, words in ((named[:5], five), (named, more)):
        log = FaultLog(windows=(STRUCK,) * 6, unhealed=faults, left_to_the_end=faults)
        assert [reason.partition(": ")[2] for reason in check(path, RunUnderCheck(faults=log)).reasons] == [words] * 2


@pytest.mark.parametrize(
    ("run", "reasons", "is_vacuous"),
    [
        (RunUnderCheck(faults_asked=("kill",), faults=FaultLog(windows=(STRUCK,))), (), False),
        (RunUnderCheck(faults_asked=("kill", "partition"), faults=FaultLog(windows=(STRUCK,) * 3)), (), False),
        (
            RunUnderCheck(faults_asked=("partition", "kill")),
            ("no fault took effect, although these were asked for: kill, partition",),
            True,
        ),
        (
            RunUnderCheck(faults_asked=("kill",), faults=FaultLog(windows=(replace(STRUCK, happened=False),))),
            ("no fault took effect, although these were asked for: kill",),
            True,
        ),
        (
            RunUnderCheck(faults_asked=("kill",), faults=FaultLog(windows=(replace(STRUCK, package=QUORUM),))),
            ("no fault took effect, although these were asked for: kill",),
            True,
        ),
        (RunUnderCheck(), (), False),
        (
            RunUnderCheck(faults=FaultLog(windows=(STRUCK,) * 3, left_to_the_end=("kill b1",))),
            ("1 of 3 faults were healed by nothing before the end of the storm: kill b1",),
            False,
        ),
        (
            RunUnderCheck(faults=FaultLog(windows=(STRUCK,) * 3, unhealed=("kill b1 (never stopped)",))),
            ("1 of 3 faults were not healed: kill b1 (never stopped)",),
            False,
        ),
    ],
)
def test_faults_without_effect_or_end_are_no_pass(
    run: RunUnderCheck, reasons: tuple[str, ...], is_vacuous: bool, tmp_path: Path
) -> None:
    result = check(history(tmp_path / "h.parquet", ROWS), run)
    assert result.reasons == reasons
    assert result.vacuous == (reasons if is_vacuous else ())


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (any_ok("read", "cas"), ""),
        ((Evidence(f="read", type="fail"),), ""),
        (any_ok("write"), "that takes an ok write (write: 0 ok, 0 failed, 1 of unknown outcome)"),
        ((Evidence(f="read", at_least=2),), "that takes 2 ok read on one key (read: 2 ok, 1 failed, 0 of unknown out"),
        (any_ok("cas"), "0 of unknown outcome); is this a history of model x?"),
        (any_ok("start-kill"), "is this a history of model x?"),
    ],
)
def test_without_anything_that_could_contradict_it_is_unknown(
    evidence: tuple[Evidence, ...], words: str, tmp_path: Path
) -> None:
    for size in (1, 1_000):
        result = check(history(tmp_path / f"{size}.parquet", ROWS, row_group_size=size), evidence=evidence)
        assert (result.verdict is Verdict.UNKNOWN) is bool(words)
        assert words in " ".join(result.reasons)
        assert result.vacuous == result.reasons


def test_what_never_ended_is_counted_as_of_unknown_outcome(tmp_path: Path) -> None:
    rows = [*ROWS, (80, 2, "invoke", "write", "x"), (81, 3, "invoke", "write", "x"), (82, 3, "ok", "write", "x")]
    (reason,) = check(history(tmp_path / "h.parquet", rows), evidence=(Evidence(f="write", at_least=2),)).reasons
    assert "(write: 1 ok, 0 failed, 2 of unknown outcome)" in reason


def test_an_empty_history_proves_nothing(tmp_path: Path) -> None:
    assert check(history(tmp_path / "h.parquet", [])).reasons == ("nothing happened: the history is empty",)


def test_accepting_what_is_vacuous_accepts_nothing_else() -> None:
    results = {
        "a": CheckerResult(verdict=Verdict.UNKNOWN, reasons=("too little",), vacuous=("too little",)),
        "b": CheckerResult(verdict=Verdict.UNKNOWN, reasons=("too little", "undecided"), vacuous=("too little",)),
        "c": CheckerResult(
            verdict=Verdict.INVALID,
            reasons=("nothing",),
            vacuous=("nothing",),
            anomalies={"lost": AnomalySummary(count=1)},
        ),
        "d": CheckerResult(verdict=Verdict.UNKNOWN, reasons=("the d checker failed",)),
    }
    assert judged_as(results, Vacuous.UNKNOWN) is results
    judged = judged_as(results, Vacuous.ACCEPTED)
    assert [result.verdict.value for result in judged.values()] == ["valid", "unknown", "invalid", "unknown"]
    assert [result.reasons for result in judged.values()] == [(), ("undecided",), (), ("the d checker failed",)]
    assert accepted(judged) == ("too little", "nothing")
    assert accepted(results) == ()


def test_none_of_many_is_too_few_however_small_a_share_is_required(tmp_path: Path) -> None:
    tried = [(100 + number, number, "invoke", "read", "x") for number in range(50)]
    run = RunUnderCheck(
        facts=RunFacts(storm_from_ns=0, final_from_ns=1_000), required_share={"read": 0.001}, recovers_within_s=0.0
    )
    reasons = check(history(tmp_path / "h.parquet", tried), run).reasons
    assert [reason.partition(" succeeded ")[0] for reason in reasons] == ["too little happened: 0 of 50 read"] * 2


def reads(tried: int, ok: int) -> list[tuple[int, int, str, str, str | None]]:
    """Two every two nanoseconds; the first ones are ok."""
    rows: list[tuple[int, int, str, str, str | None]] = []
    for number in range(tried):
        time = 110 + 2 * (number // 2)
        rows += [(time, number, "invoke", "read", "x"), (time, number, "ok" if number < ok else "info", "read", "x")]
    return rows


def struck_from(fault_ns: int) -> RunUnderCheck:
    """By a fault of 10 ns, after which the system needs 100 ns."""
    return RunUnderCheck(
        facts=RunFacts(storm_from_ns=0, final_from_ns=1_000),
        faults=FaultLog(windows=(FaultWindow(kind="kill", start_ns=fault_ns, stop_ns=fault_ns + 10),)),
        required_share={"read": 0.125},
        recovers_within_s=100e-9,
    )


def test_what_begins_with_a_fault_is_not_without_one(tmp_path: Path) -> None:
    """Of 50 that begin before, 19 are enough; of 52 they were not."""
    path = history(tmp_path / "h.parquet", reads(52, 19))
    assert check(path, struck_from(160)).reasons == ()
    assert len(check(path, struck_from(161)).reasons) == 1


@pytest.mark.parametrize(("tried", "ok", "reasons"), [(56, 20, 1), (56, 21, 0), (50, 18, 1), (50, 19, 0), (49, 7, 0)])
@pytest.mark.parametrize("fault_ns", [0, 200])
def test_more_has_to_succeed_of_what_begins_without_any_fault(
    tried: int, ok: int, reasons: int, fault_ns: int, tmp_path: Path
) -> None:
    """All begin from 110 ns on; the fault lies before them by what the system needs to recover, or behind them."""
    rows, run = reads(tried, ok), struck_from(fault_ns)
    result = check(history(tmp_path / "h.parquet", rows), run)
    assert len(result.reasons) == reasons
    assert len(check(history(tmp_path / "h.parquet", rows), replace(run, recovers_within_s=None)).reasons) == 0
    late = replace(run, faults=FaultLog(windows=(FaultWindow(kind="kill", start_ns=0, stop_ns=60),)))
    assert len(check(history(tmp_path / "h.parquet", rows), late).reasons) == 0
