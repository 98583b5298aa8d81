"""The whole path on machines: RocketMQ comes through a storm, also one that is installed, and so does DLedger."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from tests.ssh.machines import Rack
from tests.ssh.stand_in import DIRECTORY, install

pytestmark = pytest.mark.docker

BROKER, CONTROLLER = 'groups = ["brokers"]', 'groups = ["controllers"]'
PLACES = {"m1": BROKER, "m2": BROKER, "m3": BROKER, "m4": CONTROLLER, "m5": CONTROLLER, "m6": CONTROLLER}


MEMBER = 'groups = ["members"]'


@pytest.mark.thorough
def test_a_group_that_elects_its_leader_is_valid_on_machines(machines: Rack, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(machines.inventory(dict.fromkeys(("m1", "m2", "m3"), MEMBER), user="storm"))
    scenario = Scenario(
        system="dledger",
        workload="log",
        nemesis=("partition", "kill"),
        environment="ssh",
        inventory=str(inventory),
        rate=60.0,
        time_limit_s=15.0,
        recovery_s=3.0,
        seed=1,
        settings={"longest_fault_s": 3.0, "interval_s": 3.0},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())


@pytest.mark.parametrize(
    ("workload", "settings"),
    [
        pytest.param("log", {}, marks=pytest.mark.thorough),
        pytest.param("log+pop", {"installed": DIRECTORY}, marks=pytest.mark.thorough),
    ],
)
def test_the_healthy_system_is_valid_on_machines(
    workload: str, settings: dict[str, str], machines: Rack, tmp_path: Path
) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(machines.inventory(PLACES, user="storm"))
    if settings:
        for machine in machines.machines.values():
            install(machine)
    scenario = Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=("partition", "kill", "pause"),
        environment="ssh",
        inventory=str(inventory),
        concurrency=12,
        rate=100.0,
        time_limit_s=20.0,
        recovery_s=3.0,
        seed=1,
        settings={"longest_fault_s": 3.0, "interval_s": 3.0, **settings},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())
    for machine in machines.machines.values():
        assert machine.sees("sh", "-c", "ps -eo args | grep ^python3; iptables -S | grep STORM") == ""
    assert f"--inventory {inventory}" in (outcome.directory / "scenario.json").read_text()
