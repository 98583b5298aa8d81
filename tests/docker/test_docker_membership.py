"""A node in a container leaves its cluster, and comes back as another program on an empty disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.fault_log import read_fault_log
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario

pytestmark = [pytest.mark.docker, pytest.mark.gate, pytest.mark.xdist_group("storms in containers")]


def test_controllers_are_replaced_and_what_they_have_agreed_on_stays(tmp_path: Path) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload="register",
        nemesis=("shrink active-controller every 10 for 3", "wipe one of controllers every 13 for 3"),
        environment="docker",
        rate=40.0,
        time_limit_s=26.0,
        recovery_s=5.0,
        seed=1,
        settings={"brokers": 2},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    faults = read_fault_log(outcome.directory / "nemesis.jsonl")
    assert len(faults.struck) >= 2
    assert all("votes" in window.healing for window in faults.struck)
