"""A run's schedule file gives the same run again, and one that was shortened leaves the other faults as they were."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from harness.record.run_record import read_run_record
from harness.record.scenario import Scenario
from nemesis.schedule_file import lines_of
from stormproof.cli import main
from stormproof.session.engines import HERE
from stormproof.session.judge import check_run
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario

SCENARIO = Scenario(
    system="rocketmq",
    workload="log",
    nemesis=("partition", "kill", "clock", "isolate primary every 8 for 3"),
    settings={"interval_s": 3.0, "queues": 2},
    time_limit_s=20.0,
    liveness_s=4.0,
    recovery_s=5.0,
    seed=11,
)
RANDOM_FAULTS = (
    "1 for 2 isolate one of brokers [a 0]",
    "4 for 2 skew clocks of one of all [a 1]",
    "7 for 1 random halves [a 2]",
    "9 for 1 kill one of controllers [b 0]",
)


def trace_hash(outcome: Outcome) -> Any:
    return read_run_record(outcome.directory).trace_hash


def faults(outcome: Outcome) -> dict[tuple[str, int], Any]:
    """What each entry of the schedule became, by its random stream."""
    rows = map(json.loads, (outcome.directory / "nemesis.jsonl").read_text().splitlines())
    return {(row["package"], row["number"]): row["fault"] for row in rows if row["phase"] == "start"}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_scenario(SCENARIO, runs=tmp_path_factory.mktemp("drawn"), options=HERE)


def test_the_schedule_that_a_run_leaves_gives_the_same_trace_and_can_be_checked_and_replayed(
    drawn: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = lines_of(drawn.directory / "schedule.txt")
    command = next(line for line in lines if "stormproof run" in line).removeprefix("#   stormproof ")
    assert "interval_s" not in command
    main.run([*shlex.split(command), "--engine", "inprocess"])
    again = (tmp_path / "runs" / "latest").resolve()
    assert again.parent.name == "rocketmq-log-schedule"
    record = read_run_record(again)
    stored = record.scenario
    assert record.trace_hash == trace_hash(drawn)
    assert stored.schedule == lines
    assert stored.settings == {"queues": 2}
    assert (again / "nemesis.jsonl").read_text() == (drawn.directory / "nemesis.jsonl").read_text()
    assert check_run(again, options=HERE).verdict is drawn.verdict
    capsys.readouterr()
    main.run(["replay", str(again), "--engine", "inprocess"])
    assert "the same, event for event" in capsys.readouterr().out
    main.run([*shlex.split(record.replay)[1:], "--engine", "inprocess"])
    assert read_run_record(tmp_path / "runs" / "latest").trace_hash == trace_hash(drawn)


def test_a_fault_that_is_taken_away_leaves_the_draws_of_the_others(tmp_path: Path) -> None:
    whole = Scenario(system="rocketmq", workload="log", schedule=RANDOM_FAULTS, time_limit_s=12, recovery_s=5, seed=3)
    shorter = dataclasses.replace(whole, schedule=(RANDOM_FAULTS[0], "# taken away", *RANDOM_FAULTS[2:]))
    all_of_them, others = (faults(run_scenario(scenario, runs=tmp_path, options=HERE)) for scenario in (whole, shorter))
    assert all_of_them.pop(("a", 1)) is not None
    assert others == all_of_them
    assert all(others.values())
