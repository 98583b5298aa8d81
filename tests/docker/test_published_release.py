"""RocketMQ itself on trial, as Apache publishes it: each way to name it, what its nodes leave, and a verdict."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkers.api.verdict import Verdict
from harness.environments.docker.engine import engine
from harness.errors import UsageError
from harness.record.event_lines import node_events
from harness.record.run_directory import EVENTS, NODE_LOGS
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario
from workloads.systems.rocketmq.release import DIRECTORY

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("storms in containers")]

RELEASE = "5.4.0"


def outcome_of(runs: Path, *nemesis: str, **settings: Any) -> Outcome:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=nemesis,
        environment="docker",
        rate=50.0,
        time_limit_s=10.0,
        recovery_s=2.0,
        seed=1,
        settings=settings,
    )
    return run_scenario(scenario, runs=runs, options=HERE)


@pytest.mark.gate
def test_a_release_that_maven_fetches_is_valid_and_leaves_its_logs_and_its_nodes_roles(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, release=RELEASE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    nodes = outcome.directory / "nodes"
    assert "boot success" in (nodes / "b1" / NODE_LOGS / "rocketmqlogs" / "broker.log").read_text()
    assert list((nodes / "c1" / NODE_LOGS / "rocketmqlogs").glob("*.log"))
    played = {
        node: {event.get("role", event["event"]) for _, event in node_events(nodes / node / EVENTS)}
        for node in ("b1", "b2", "b3", "c1", "c2", "c3")
    }
    assert any("master" in played[node] for node in ("b1", "b2", "b3"))
    assert any("leader" in played[node] for node in ("c1", "c2", "c3"))


@pytest.mark.thorough
def test_a_release_serves_while_its_clocks_are_wrong(tmp_path: Path) -> None:
    """A JVM waits on monotonic time: where such waits end at once, or late, controllers never elect a leader."""
    outcome = outcome_of(tmp_path, "skew clocks of one of brokers every 4 for 3", release=RELEASE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert outcome.faults["clock"]["with_effect"] > 0


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One that has a release where its variable ROCKETMQ_HOME says, as the vendor's has."""
    outcome = outcome_of(tmp_path_factory.mktemp("runs"), release=RELEASE)
    made = json.loads((outcome.directory / "scenario.json").read_text())["environment"]["images"]["b1"]
    with engine() as client:
        container = client.containers.create(made, ["true"])
        try:
            container.commit("stormproof-test-release", "1", changes=[f"ENV ROCKETMQ_HOME={DIRECTORY}"])
        finally:
            container.remove()
        try:
            yield "stormproof-test-release:1"
        finally:
            client.images.remove("stormproof-test-release:1")


@pytest.mark.thorough
def test_an_image_that_has_a_release_is_used_as_it_is(image: str, tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, image=image)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.thorough
def test_a_distribution_runs_by_its_own_scripts_as_a_folder_and_as_an_archive(image: str, tmp_path: Path) -> None:
    with engine() as client:
        container = client.containers.create(image, ["true"])
        try:
            packed = b"".join(container.get_archive(DIRECTORY)[0])
        finally:
            container.remove()
    archive = tmp_path / "rocketmq-all-bin-release.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(packed)) as whole:
        whole.extractall(tmp_path / "unpacked", filter="data")
    with tarfile.open(archive, "w:gz") as again:
        again.add(tmp_path / "unpacked" / "rocketmq", "rocketmq-all-bin-release")
    for named in (tmp_path / "unpacked" / "rocketmq", archive):
        outcome = outcome_of(tmp_path, distribution=str(named))
        assert outcome.verdict is Verdict.VALID, outcome.words()


def test_a_release_that_maven_does_not_find_is_refused_with_the_other_ways(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Maven finds no org.apache.rocketmq:rocketmq-broker:jar:0\.0\.1.*installed"):
        outcome_of(tmp_path, release="0.0.1")
