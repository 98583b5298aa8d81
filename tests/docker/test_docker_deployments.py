"""In containers as in the simulator: several workloads at once, measured meanwhile, and nodes upgraded in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from harness.record.usage_log import read_usage
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario

pytestmark = [pytest.mark.docker, pytest.mark.thorough]


def test_workloads_run_at_once_through_faults_while_it_is_measured_what_nodes_hold(tmp_path: Path) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload="log+pop+register",
        nemesis=("kill", "partition"),
        environment="docker",
        concurrency=15,
        rate=60.0,
        time_limit_s=40.0,
        recovery_s=5.0,
        seed=2,
        settings={"longest_fault_s": 3.0, "interval_s": 8.0, "controllers": 1, "brokers": 2, "min_in_sync_replicas": 1},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert {"log/send", "pop/pop", "register/read"} <= outcome.operations.keys()
    rows = read_usage(outcome.directory / "usage.jsonl")
    assert {row.node for row in rows} == {"c1", "b1", "b2"}
    assert all(row.memory_bytes > 1 << 20 and row.handles > 2 for row in rows)


def test_nodes_are_upgraded_in_place_and_nothing_is_lost(tmp_path: Path) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=("upgrade all every 12 for 3", "kill one of brokers every 9 for 2"),
        environment="docker",
        rate=40.0,
        time_limit_s=22.0,
        recovery_s=5.0,
        seed=1,
        settings={"deployment": "dual-write", "brokers": 2, "name_servers": 1, "begins_as_version": 4},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert outcome.faults["upgrade"]["with_effect"]
