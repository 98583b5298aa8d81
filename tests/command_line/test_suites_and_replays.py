"""Suites in several processes, and replays, with the real system."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from stormproof.session import registry
from stormproof.session.suite_file import load_suite
from tests.command_line.answers import Stormproof

SUITE = """
name = "mine"

[defaults]
system = "rocketmq"
time_limit_s = 12
recovery_s = 10

[[matrix]]
workload = ["log", "register"]
nemesis = "kill"
seeds = [1]

[[matrix]]
workload = "log"
nemesis = "isolate primary every 12 for 6"
mutant = "dispatch-to-max"
time_limit_s = 30
rate = 200
seeds = [1]
"""


@pytest.mark.gate
def test_two_jobs_give_the_same_verdicts_as_one_and_one_junit_with_a_case_each(stormproof: Stormproof) -> None:
    Path("mine.toml").write_text(SUITE)
    verdicts = []
    for jobs in ("1", "2"):
        junit = Path(f"junit-{jobs}.xml")
        options = ["--jobs", jobs, "--engine", "inprocess", "--junit", junit, "--runs", f"runs-{jobs}", "--json"]
        answer = stormproof("suite", "mine.toml", *options)
        assert answer.code == 1, answer.err
        verdicts.append([(entry["scenario"]["workload"], entry["verdict"]) for entry in answer.json["scenarios"]])
        suite = ElementTree.parse(junit).getroot()[0]
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
        problems = [[child.get("type") for child in case if child.tag == "failure"] for case in suite]
        assert problems == [[], [], ["invalid"]]
    assert verdicts[0] == verdicts[1] == [("log", "valid"), ("register", "valid"), ("log", "invalid")]


def test_a_stored_run_replays_event_for_event(stormproof: Stormproof, stored_run: Path) -> None:
    answer = stormproof("replay", stored_run, "--engine", "inprocess")
    assert answer.code == 0, answer.err
    assert "replayed  the same, event for event (trace " in answer.out


def test_the_smoke_suite_is_small_and_covers_log_and_register_and_every_fault_without_mutants() -> None:
    scenarios = load_suite("smoke").scenarios
    assert len(scenarios) <= 12
    assert sum(scenario.time_limit_s + scenario.recovery_s for scenario in scenarios) <= 600
    assert {scenario.workload for scenario in scenarios} == {"log", "register"}
    assert {fault for scenario in scenarios for fault in scenario.nemesis} >= {
        "partition", "kill", "pause", "clock", "power",
    }  # fmt: skip
    assert {scenario.environment for scenario in scenarios} == {"simulated"}
    assert {scenario.mutant for scenario in scenarios} == {None}


def test_the_nightly_suite_covers_every_workload_and_runs_in_containers_as_well() -> None:
    scenarios = load_suite("nightly").scenarios
    assert {scenario.workload for scenario in scenarios} == set(registry.system("rocketmq").workloads)
    assert {scenario.environment for scenario in scenarios} == {"simulated", "docker"}
    assert {scenario.mutant for scenario in scenarios} == {None}


def test_the_suite_of_real_systems_expects_something_of_each_row_and_takes_less_than_45_minutes() -> None:
    rows = load_suite("real").rows
    assert all(row.expected is not None for row in rows)
    assert {row.expected.name for row in rows if row.expected is not None} == {"valid", "invalid", "not-valid"}
    assert {row.scenario.environment for row in rows} == {"docker"}
    assert all("release" in row.scenario.settings for row in rows if row.scenario.system == "rocketmq")
    start_and_end_s = 25.0
    took_s = [row.scenario.time_limit_s + row.scenario.recovery_s + start_and_end_s for row in rows]
    assert 15 * 60 <= sum(took_s) <= 45 * 60
