"""A published RocketMQ that is installed on machines is put on trial there, by its own start scripts and on Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.environments.docker import engine
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from tests.ssh.machines import rack
from tests.ssh.test_ssh_storms import PLACES
from workloads.systems.rocketmq.release import DIRECTORY, image
from workloads.systems.rocketmq.settings import RocketmqSettings

pytestmark = [pytest.mark.docker, pytest.mark.thorough]


def test_it_serves_without_faults_and_its_java_programs_are_gone_afterwards(tmp_path: Path) -> None:
    release = image(RocketmqSettings(release="5.4.0"))
    with engine() as client, rack(client, [*PLACES], tmp_path, installed=release) as machines:
        inventory = tmp_path / "hosts.toml"
        inventory.write_text(machines.inventory(PLACES, user="storm"))
        scenario = Scenario(
            system="rocketmq",
            workload="log+consumption",
            environment="ssh",
            inventory=str(inventory),
            concurrency=12,
            rate=100.0,
            time_limit_s=20.0,
            recovery_s=3.0,
            seed=1,
            settings={"installed": DIRECTORY},
        )
        outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
        assert outcome.verdict is Verdict.VALID, outcome.words()
        assert {path.name for path in (outcome.directory / "nodes").iterdir()} == {"b1", "b2", "b3", "c1", "c2", "c3"}
        for machine in machines.machines.values():
            assert machine.sees("sh", "-c", "ps -eo args | grep ^java") == ""
