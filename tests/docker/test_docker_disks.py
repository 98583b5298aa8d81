"""Disks of ours in containers: each fault really strikes the node whose disk it is, and only that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_cluster import Cluster, MakeCluster, probe

pytestmark = pytest.mark.docker

NAMES = ("p1", "p2")


@pytest.fixture(scope="module")
def disks(make_cluster: MakeCluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Two probes with disks of ours; each test leaves them running."""
    cluster = make_cluster(frozenset(("power",)))
    cluster.do(cluster.environment.start([probe(name) for name in NAMES], tmp_path_factory.mktemp("nodes")))
    cluster.do(cluster.until_serving(*NAMES))
    return cluster


def lose_power(disks: Cluster, *nodes: str) -> str:
    effect = disks.do(disks.environment.power_off(nodes))
    assert effect.happened
    assert disks.do(disks.environment.boot(nodes)).happened
    disks.do(disks.until_serving(*nodes))
    return effect.evidence


def test_what_was_fsynced_survives_a_loss_of_power_and_the_rest_is_torn(disks: Cluster) -> None:
    lost = []
    for number in range(6):
        path = f"log-{number}"
        assert disks.ask("p1", "append", path=path, text="durable", fsync=True) == ""
        assert disks.ask("p1", "append", path=path, text="x" * 1000, fsync=False) == ""
        evidence = lose_power(disks, "p1")
        content = disks.ask("p1", "content", path=path)
        assert content.startswith("durable") and set(content[7:]) <= {"x", "\0"}
        lost.append(1000 - content.count("x"))
        assert f"{lost[-1]} unsynced bytes" in evidence, "the effect says what was lost"
    assert any(lost), "in six losses of power nothing was lost"


def test_a_killed_program_leaves_what_it_wrote(disks: Cluster) -> None:
    assert disks.ask("p1", "append", path="killed", text="written", fsync=False) == ""
    disks.do(disks.environment.kill(["p1"]))
    disks.do(disks.environment.boot(["p1"]))
    disks.do(disks.until_serving("p1"))
    assert disks.ask("p1", "content", path="killed") == "written"


def test_a_loss_of_power_leaves_other_nodes_and_logs_alone(disks: Cluster, tmp_path: Path) -> None:
    assert disks.ask("p2", "append", path="other", text="written", fsync=False) == ""
    lose_power(disks, "p1")
    assert disks.ask("p2", "content", path="other") == "written"
