"""A storm on brokers above a group of DLedger, whose master changes in it: nothing acknowledged is lost."""

from __future__ import annotations

import json

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry


@pytest.mark.parametrize("workload", ["log", "pop"])
def test_masters_change_and_nothing_acknowledged_is_lost(workload: str) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=("partition", "kill", "power"),
        environment="simulated",
        concurrency=5,
        rate=30.0,
        time_limit_s=15.0,
        recovery_s=5.0,
        seed=3,
        settings={"deployment": "dledger", "time_scale": 0.1, "interval_s": 3.0, "longest_fault_s": 1.5},
    )
    judged = blown_and_judged(scenario, registry.resolve(scenario))
    assert judged.verdict is Verdict.VALID, judged.words()
    events = [json.loads(line) for lines in judged.blown.events.values() for line in lines]
    masters = [event["master_epoch"] for event in events if event["event"] == "role" and event["role"] == "master"]
    assert len(set(masters)) > 1
