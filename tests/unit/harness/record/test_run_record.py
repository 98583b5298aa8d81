"""The record of a run: what is written is read back, the first format still is, an unknown one is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.record.facts import RunFacts
from harness.record.run_directory import RunDirectory
from harness.record.run_record import FORMAT, RunRecord, read_run_record, write_run_record
from harness.record.scenario import Scenario

SCENARIO = Scenario(system="rocketmq", workload="log", nemesis=("kill",), settings={"brokers": 3}, seed=7)
RECORD = RunRecord(
    scenario=SCENARIO,
    versions={"stormproof": "0.1.0"},
    replay="stormproof run rocketmq --seed 7",
    facts=RunFacts(
        reasons=("the disk was full",), panics={"b1": "no"}, storm_from_ns=5, final_from_ns=9, complete=True
    ),
    environment={"regime": {"latency_ms": 0.3}, "trace_hash": "4f0c", "trace_events": 17, "reached": {"voted": 3}},
)

OF_FORMAT_1 = """
{
  "system": "rocketmq", "workload": "log", "nemesis": ["kill"], "environment": "simulated",
  "settings": {"brokers": 3}, "mutant": null, "concurrency": 10, "rate": 100.0, "time_limit_s": 60.0,
  "recovery_s": 20.0, "liveness_s": 0.0, "max_outage_s": 0.0, "seed": 7,
  "versions": {"stormproof": "0.1.0"},
  "replay": "stormproof run rocketmq --seed 7",
  "regime": {"latency_ms": 0.3}, "trace_hash": "4f0c", "trace_events": 17, "reached": {"voted": 3},
  "facts": {
    "reasons": ["the disk was full"], "panics": {"b1": "no"}, "storm_from_ns": 5, "final_from_ns": 9, "complete": true
  }
}
"""


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_run_record(RunDirectory(tmp_path), RECORD)
    assert read_run_record(tmp_path) == RECORD
    assert json.loads((tmp_path / "scenario.json").read_text())["format"] == FORMAT
    assert (RECORD.regime, RECORD.trace_hash) == ({"latency_ms": 0.3}, "4f0c")


def test_a_run_that_goes_on_has_no_facts(tmp_path: Path) -> None:
    write_run_record(RunDirectory(tmp_path), RunRecord(scenario=SCENARIO))
    assert read_run_record(tmp_path) == RunRecord(scenario=SCENARIO)


def test_the_first_format_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(OF_FORMAT_1)
    assert read_run_record(tmp_path) == RECORD


def test_an_environment_may_report_anything_of_its_own() -> None:
    images = {"images": {"b1": "stormproof-node:1"}}
    assert RunRecord.from_json(RunRecord(scenario=SCENARIO, environment=images).to_json()).environment == images


@pytest.mark.parametrize("number", [3, 0, "2", True, None, 2.0])
def test_an_unknown_format_is_refused_by_name_with_what_to_do(number: Any, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(json.dumps(RECORD.to_json() | {"format": number}))
    with pytest.raises(UsageError) as refused:
        read_run_record(tmp_path)
    assert f"scenario.json: format {number!r} is not known here, only formats up to 2" in str(refused.value)
    assert "check this run with the version of stormproof that wrote it" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenario": None}, "cannot be read: scenario cannot be None"),
        ({"scenario": {"system": "x"}}, "scenario lacks the field 'workload'"),
        ({"scenario": SCENARIO.to_json() | {"extra": 1}}, "unknown field 'extra' of a scenario"),
        ({"trace_hash": 5}, "cannot be read: trace_hash cannot be 5"),
        ({"facts": {"complete": 1}}, "facts: complete cannot be 1"),
    ],
)
def test_what_is_wrong_in_a_record_is_named(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(json.dumps(RECORD.to_json() | change))
    with pytest.raises(UsageError, match=words):
        read_run_record(tmp_path)
