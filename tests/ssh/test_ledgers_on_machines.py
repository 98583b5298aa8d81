"""BookKeeper comes through a storm on machines: its three kinds of nodes, each on one of its own."""

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

PLACES = {
    **dict.fromkeys(("h1", "h2", "h3"), 'groups = ["metadata"]'),
    **dict.fromkeys(("h4", "h5", "h6"), 'groups = ["bookies"]'),
    **dict.fromkeys(("h7", "h8"), 'groups = ["brokers"]'),
}


def test_ledgers_are_valid_on_machines(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    with engine() as client, rack(client, [*PLACES], tmp_path) as machines:
        inventory.write_text(machines.inventory(PLACES, user="storm"))
        scenario = Scenario(
            system="bookkeeper",
            workload="log",
            nemesis=("isolate owner every 8 for 3", "kill one of bookies every 7 for 1", "pause owner every 9 for 3"),
            environment="ssh",
            inventory=str(inventory),
            rate=40.0,
            time_limit_s=18.0,
            recovery_s=5.0,
            seed=1,
            settings={"bookies": 3, "session_timeout_s": 2.0, "roll_entries": 20},
        )
        outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())
