"""The whole path in containers: a healthy system comes through a storm, a planted bug does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("storms in containers")]


def _scenario(nemesis: tuple[str, ...], mutant: str | None = None, time_limit_s: float = 15.0) -> Scenario:
    return Scenario(
        system="rocketmq",
        workload="log",
        nemesis=nemesis,
        environment="docker",
        mutant=mutant,
        rate=100.0,
        time_limit_s=time_limit_s,
        recovery_s=5.0,
        seed=1,
        settings={} if mutant else {"longest_fault_s": 6.0},
    )


def require_valid(scenario: Scenario, runs: Path, *, nodes: tuple[str, ...]) -> None:
    """Each fault has had an effect, and each of these nodes has reported something."""
    outcome = run_scenario(scenario, runs=runs, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())
    for node in nodes:
        assert (outcome.directory / "nodes" / node / "events.jsonl").stat().st_size


@pytest.mark.gate
def test_the_healthy_system_is_valid_in_containers(tmp_path: Path) -> None:
    require_valid(
        _scenario(("partition", "kill", "pause", "clock"), time_limit_s=20.0),
        tmp_path,
        nodes=("b1", "b2", "b3", "c1", "c2", "c3"),
    )


@pytest.mark.gate
def test_a_group_that_elects_its_leader_is_valid_in_containers(tmp_path: Path) -> None:
    scenario = Scenario(
        system="dledger",
        workload="log",
        nemesis=("partition", "kill"),
        environment="docker",
        rate=60.0,
        time_limit_s=15.0,
        recovery_s=3.0,
        seed=1,
        settings={"longest_fault_s": 3.0, "interval_s": 3.0},
    )
    require_valid(scenario, tmp_path, nodes=("n1", "n2", "n3"))


STORM = Scenario(
    system="rocketmq",
    workload="log",
    environment="docker",
    rate=100.0,
    time_limit_s=20.0,
    recovery_s=5.0,
    seed=1,
)
LINKS_AND_PROCESSES = (
    *("isolate owner every 9 for 3", "kill one of bookies every 8 for 1", "pause owner every 11 for 4"),
    *("power off one of bookies every 10 for 1", "isolate metadata-leader every 12 for 2"),
    "skew clocks of owner every 9 for 3",
)
DISKS = (
    *("shrink one of bookies every 13 for 3", "slow disks of one of bookies every 9 for 3"),
    *("fail fsyncs of one of bookies every 11 for 1", "fill disks of one of bookies every 12 for 2"),
)


@pytest.mark.parametrize(
    "nemesis",
    [
        pytest.param(LINKS_AND_PROCESSES, marks=pytest.mark.gate, id="links and processes"),
        pytest.param(DISKS, marks=pytest.mark.thorough, id="disks and members"),
    ],
)
def test_ledgers_are_valid_in_containers(nemesis: tuple[str, ...], tmp_path: Path) -> None:
    settings = {"session_timeout_s": 2.0, "roll_entries": 20}
    scenario = replace(STORM, system="bookkeeper", nemesis=nemesis, rate=40.0, settings=settings)
    require_valid(scenario, tmp_path, nodes=("b1", "b2", "b3", "m1", "p1"))


QUEUES_AND_PROCESSES = (
    *("isolate leader every 9 for 3", "kill one of nodes every 8 for 1", "pause leader-2 every 11 for 3"),
    *("power off nodes every 12 for 1", "skew clocks of leader every 9 for 3"),
)
QUEUES_AND_DISKS = (
    *("shrink one of nodes every 13 for 3", "slow disks of nodes every 9 for 3"),
    *("fail fsyncs of one of nodes every 11 for 1", "fill disks of one of nodes every 12 for 2"),
)


@pytest.mark.parametrize(
    "nemesis",
    [
        pytest.param(QUEUES_AND_PROCESSES, marks=pytest.mark.thorough, id="links and processes"),
        pytest.param(QUEUES_AND_DISKS, marks=pytest.mark.gate, id="disks and members"),
    ],
)
def test_queues_on_raft_are_valid_in_containers(nemesis: tuple[str, ...], tmp_path: Path) -> None:
    scenario = replace(STORM, system="cmq", workload="queue+pop", nemesis=nemesis, rate=60.0)
    require_valid(scenario, tmp_path, nodes=("n1", "n2", "n3"))


@pytest.mark.gate
def test_brokers_above_a_group_of_dledger_are_valid_in_containers(tmp_path: Path) -> None:
    faults = _scenario(("isolate primary every 10 for 3", "power off one of brokers every 8 for 1"))
    scenario = replace(faults, settings={"deployment": "dledger", "ack_durable": True})
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())


@pytest.mark.gate
def test_a_planted_bug_is_caught_in_containers(tmp_path: Path) -> None:
    scenario = _scenario(("isolate primary every 8 for 5",), "dispatch-to-max")
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert outcome.anomalies()["dirty-read"]
