"""A release of Apache RocketMQ in a storm of containers says of itself what our own nodes do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.api.verdict import Verdict
from harness.record.event_lines import node_events
from harness.record.run_directory import EVENTS, FAULTS, NODE_LOGS
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario

pytestmark = [pytest.mark.docker, pytest.mark.thorough]


def test_logs_and_events_of_a_release_come_home_also_from_nodes_that_were_killed(tmp_path: Path) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=("kill primary every 8 for 2",),
        environment="docker",
        rate=20.0,
        concurrency=5,
        time_limit_s=15.0,
        recovery_s=10.0,
        seed=1,
        settings={"release": "5.4.0", "controllers": 1, "brokers": 2, "min_in_sync_replicas": 1},
    )
    directory = run_scenario(scenario, runs=tmp_path, options=HERE).directory
    faults = [json.loads(line) for line in (directory / FAULTS).read_text().splitlines()]
    starts = [fault for fault in faults if fault["phase"] == "start"]
    assert starts
    assert all(fault["happened"] for fault in starts)
    for node in ("b1", "b2", "c1"):
        assert list((directory / "nodes" / node / NODE_LOGS).rglob("*.log"))
    roles = [event for node in ("b1", "b2") for event in events(directory, node, "role")]
    masters = {event["master_epoch"]: event["broker_id"] for event in roles if event["role"] == "master"}
    elected = {event["master_epoch"]: event["master"] for event in events(directory, "c1", "elected")}
    assert len(masters) >= 2, "it passed on, or was taken up again under another epoch"
    assert masters.items() <= elected.items()
    killed = starts[0]["targets"][0]
    assert [event["role"] for event in events(directory, killed, "role") if event["time"] < starts[0]["time"]][-1] == (
        "master"
    )
    assert events(directory, "c1", "leader")


def test_brokers_of_a_release_elect_another_master_by_dledger_and_say_so(tmp_path: Path) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=("isolate primary every 20 for 15",),
        environment="docker",
        rate=20.0,
        concurrency=5,
        time_limit_s=40.0,
        recovery_s=10.0,
        seed=1,
        settings={"release": "5.4.0", "deployment": "dledger", "name_servers": 1},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    brokers = ("b1", "b2", "b3")
    leaders = {event["term"]: node for node in brokers for event in events(outcome.directory, node, "leader")}
    roles = [(node, event) for node in brokers for event in events(outcome.directory, node, "role")]
    masters = {event["master_epoch"]: node for node, event in roles if event["role"] == "master"}
    assert len(set(masters.values())) >= 2, "another one became master"
    assert masters.items() <= leaders.items()


def events(directory: Path, node: str, name: str) -> list[dict[str, Any]]:
    found = node_events(directory / "nodes" / node / EVENTS)
    return [event for _, event in found if event["event"] == name]
