"""CMQ comes through a storm on machines, each of which runs one of its nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.environments.docker import engine
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from tests.ssh.machines import rack

pytestmark = [pytest.mark.docker, pytest.mark.thorough]

PLACES = dict.fromkeys(("h1", "h2", "h3"), 'groups = ["nodes"]')


def test_queues_on_raft_are_valid_on_machines(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    with engine() as client, rack(client, [*PLACES], tmp_path) as machines:
        inventory.write_text(machines.inventory(PLACES, user="storm"))
        scenario = Scenario(
            system="cmq",
            workload="queue+pop",
            nemesis=("isolate leader every 8 for 3", "kill one of nodes every 7 for 1", "pause leader-2 every 9 for 3"),
            environment="ssh",
            inventory=str(inventory),
            rate=60.0,
            time_limit_s=18.0,
            recovery_s=5.0,
            seed=1,
        )
        outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())
