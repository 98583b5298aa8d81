"""etcd, NATS, RabbitMQ and ZooKeeper in containers, each as its adapter puts it on trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.fault_log import read_fault_log
from harness.record.scenario import Scenario, SettingValue
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario

pytestmark = pytest.mark.docker
STORM = ("partition", "kill", "pause")


def _scenario(
    system: str, workload: str, *, nemesis: tuple[str, ...] = STORM, settings: dict[str, SettingValue] | None = None
) -> Scenario:
    return Scenario(
        system=system,
        workload=workload,
        nemesis=nemesis,
        environment="docker",
        rate=50.0,
        concurrency=12,
        time_limit_s=30.0,
        recovery_s=5.0,
        seed=1,
        settings=settings or {},
    )


@pytest.mark.parametrize(
    ("system", "workload"),
    [
        pytest.param("etcd", "list-append", marks=pytest.mark.gate),
        pytest.param("etcd", "register", marks=pytest.mark.thorough),
        pytest.param("etcd", "set", marks=pytest.mark.thorough),
        pytest.param("nats", "queue", marks=pytest.mark.thorough),
        pytest.param("rabbitmq", "queue", marks=pytest.mark.thorough),
        pytest.param("zookeeper", "queue", marks=pytest.mark.thorough),
        pytest.param("zookeeper", "set", marks=pytest.mark.thorough),
    ],
)
def test_what_it_promises_holds_through_a_storm(tmp_path: Path, system: str, workload: str) -> None:
    outcome = run_scenario(_scenario(system, workload), runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.thorough
def test_members_of_etcd_are_replaced_and_every_register_stays_linearizable(tmp_path: Path) -> None:
    nemesis = ("shrink one of members every 14 for 3", "wipe leader every 26 for 3")
    outcome = run_scenario(_scenario("etcd", "register", nemesis=nemesis), runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    replaced = [window for window in read_fault_log(outcome.directory / "nemesis.jsonl").struck if window.healing]
    assert replaced
    assert all("has applied" in window.healing for window in replaced)


@pytest.mark.thorough
def test_reads_that_ask_nobody_else_are_stale_and_are_found(tmp_path: Path) -> None:
    settings: dict[str, SettingValue] = {"serializable_reads": True, "strict": True}
    scenario = _scenario("etcd", "register", nemesis=("isolate one of members every 12 for 8",), settings=settings)
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "nonlinearizable" in outcome.words()


@pytest.mark.parametrize("system", [pytest.param("nats", marks=pytest.mark.thorough)])
def test_without_faults_what_was_put_in_comes_out(tmp_path: Path, system: str) -> None:
    outcome = run_scenario(_scenario(system, "queue", nemesis=()), runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.thorough
def test_without_faults_every_copy_of_a_stream_holds_the_same(tmp_path: Path) -> None:
    outcome = run_scenario(_scenario("nats", "log", nemesis=()), runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
