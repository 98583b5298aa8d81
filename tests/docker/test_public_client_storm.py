"""RocketMQ's public client, unmodified, in a storm of containers: it is served, and nothing of it stays behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.environments.docker import engine
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from workloads.systems.rocketmq.clients.public.process import PROGRAM

pytestmark = [pytest.mark.docker, pytest.mark.thorough]

SMALL = {"client": "grpc", "controllers": 1, "brokers": 2, "min_in_sync_replicas": 1, "longest_fault_s": 3.0}


def test_messages_popped_by_the_public_client_survive_a_storm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    scenario = Scenario(
        system="rocketmq",
        workload="pop",
        nemesis=("partition", "kill"),
        environment="docker",
        rate=50.0,
        concurrency=5,
        time_limit_s=20.0,
        recovery_s=5.0,
        seed=1,
        settings=SMALL,
    )
    outcome = run_scenario(scenario, runs=tmp_path / "runs", options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert all(count["with_effect"] for count in outcome.faults.values())
    assert sorted(path.name for path in (outcome.directory / "clients").iterdir()) == ["public-client"]
    assert not (tmp_path / "home").exists()
    assert not any(str(PROGRAM) in command for command in _commands())
    with engine() as client:
        assert not [one.name for one in client.containers.list(all=True) if str(tmp_path) in str(one.labels)]


def _commands() -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_text())
        except OSError:
            continue
    return found
