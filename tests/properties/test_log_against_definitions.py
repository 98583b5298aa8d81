"""The log checker's vectorised kernels against the definitions, however the history is cut, on both engines."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.in_process.engine import InProcessEngine
from checkers.log import LogChecker
from checkers.log.rows import LOG_MESSAGES
from checkers.run import check_history
from checkers.statistics import Statistics
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.history import history_schema
from tests.references.log_histories import defined_anomalies, random_history

CHECKERS = {"log": LogChecker(), "statistics": Statistics()}


def written(seed: int, path: Path, operations: int, row_group_size: int) -> tuple[Path, Counter[str]]:
    rows = random_history(random.Random(seed), operations)
    numbered = [{"index": i, "time": i * 1_000, **row} for i, row in enumerate(rows)]
    table = pa.Table.from_pylist(numbered, schema=history_schema(LOG_MESSAGES))
    pq.write_table(table, path, row_group_size=row_group_size)
    return path, defined_anomalies(rows)


@pytest.mark.parametrize("cut", ["whole", pytest.param("in-pieces", marks=pytest.mark.gate)])
def test_counts_are_those_of_the_definitions(cut: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row_group_rows = 40
    if cut == "in-pieces":
        monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 7)
        monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 40)
        row_group_rows = 11
    names: Counter[str] = Counter()
    for seed in range(30):
        path, defined = written(seed, tmp_path / f"{seed}.parquet", 40, row_group_rows)
        result = check_history(CheckRequest(history=path), CHECKERS, InProcessEngine())["log"]
        found = Counter({name: summary.count for name, summary in result.anomalies.items()})
        assert found == defined, (seed, result.reasons)
        names += found
    assert len(names) == 14, f"some anomalies never occurred: {sorted(names)}"


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(10), marks=pytest.mark.gate, id="0"),
        pytest.param(range(10, 100), marks=pytest.mark.thorough, id="10"),
    ],
)
def test_results_do_not_depend_on_how_the_history_is_cut(
    seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(seed, tmp_path / f"{seed}.parquet", 60, 13)[0] for seed in seeds]
    engine = InProcessEngine()
    whole = [check_history(CheckRequest(history=path), CHECKERS, engine) for path in paths]
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 5)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 17)
    assert [check_history(CheckRequest(history=path), CHECKERS, engine) for path in paths] == whole


def test_legal_loss_is_reported_and_is_no_violation(tmp_path: Path) -> None:
    path, defined = written(2, tmp_path / "h.parquet", 60, 13)
    assert defined
    strict = LogChecker().check(CheckRequest(history=path), InProcessEngine())
    legal = {name: "asynchronous replication" for name in defined}
    lenient = LogChecker().check(CheckRequest(history=path, legal=legal), InProcessEngine())
    assert strict.verdict.value == "invalid"
    assert lenient.verdict.value != "invalid"
    assert {name: summary.count for name, summary in lenient.anomalies.items()} == dict(defined)
    assert all(summary.legal for summary in lenient.anomalies.values())


@pytest.mark.gate
def test_data_at_risk_is_what_was_acked_and_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 7)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 40)
    runs_with_losses = 0
    for seed in range(40):
        path = written(seed, tmp_path / f"{seed}.parquet", 40, 11)[0]
        rng = random.Random(seed)
        starts = [rng.randrange(120_000) for _ in range(rng.randrange(4))]
        faults = [
            FaultWindow(kind="kill", shape=f"at {at}", start_ns=at, stop_ns=at + rng.randrange(30_000)) for at in starts
        ]
        request = CheckRequest(history=path, run=RunUnderCheck(faults=FaultLog(windows=tuple(faults))))
        result = check_history(request, CHECKERS, InProcessEngine())["log"]
        table = pq.read_table(path).to_pylist()
        acked = {}
        for row in table:
            if (row["f"], row["type"]) == ("send", "ok"):
                acked.setdefault(row["value"]["message"], row["time"])
        lost = sorted(acked[message] for message in lost_messages(table) if message in acked)
        expected: dict[str, list[int]] = {}
        for time in lost:
            ordered = sorted(faults, key=lambda fault: (fault.start_ns, fault.stop_ns))
            name = next((fault.name for fault in ordered if fault.stop_ns >= time), "no fault")
            expected.setdefault(name, []).append(time)
        reported = {row["fault"]: row for row in result.statistics.get("data_at_risk", ())}
        assert {name: row["lost"] for name, row in reported.items()} == {name: len(at) for name, at in expected.items()}
        for name, times in expected.items():
            assert reported[name]["span_ns"] == times[-1] - times[0]
            if name != "no fault":
                assert reported[name]["reach_ns"] == max(0, int(name.split()[1]) - times[0])
        runs_with_losses += bool(lost)
    assert runs_with_losses > 10


def lost_messages(rows: list[dict[str, Any]]) -> set[int]:
    """Those that are lost or unseen, each found by leaving out what the others show beside the final log."""
    caught_up = {(row["key"], row["node"]) for row in rows if (row["f"], row["type"]) == ("caught-up", "ok")}
    messages = {row["value"]["message"] for row in rows if row["f"] == "send"}

    def alone(row: dict[str, Any], message: int) -> dict[str, Any]:
        read = row["value"]["messages"] or []
        if row["f"] != "final-poll" or (row["key"], row["node"]) not in caught_up:
            read = [one for one in read if one["message"] == message]
        return {**row, "value": {**row["value"], "messages": read}}

    def is_lost(message: int) -> bool:
        mine = [row for row in rows if row["f"] != "send" or row["value"]["message"] == message]
        found = defined_anomalies([alone(row, message) for row in mine])
        return found["lost-write"] + found["unseen"] > 0

    return {message for message in messages if is_lost(message)}
