"""Probes in containers, started once for a module: that takes seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from probe_cluster import PROBE, Cluster, MakeCluster, probe, run_id

import system_under_test
from harness.environments.docker import DockerEnvironment, engine, node_image
from system_under_test.runtime.real import RealHost


@pytest.fixture(scope="session")
def probe_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The usual image with the probe's program beside the node's."""
    package = tmp_path_factory.mktemp("image") / "system_under_test"
    shutil.copytree(Path(system_under_test.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, package / "probe.py")
    with engine() as client:
        return node_image(client, package=package, base=None, say=print)


@pytest.fixture(scope="module")
def make_cluster(probe_image: str) -> Iterator[MakeCluster]:
    made: list[Cluster] = []
    with engine() as client:

        def make() -> Cluster:
            run = run_id()
            environment = DockerEnvironment(client, image=probe_image, client_hosts=RealHost, run=run, say=print)
            made.append(Cluster(environment, client))
            return made[-1]

        yield make
        for cluster in made:
            cluster.do(cluster.environment.stop())
            cluster.close()


@pytest.fixture(scope="module")
def probes(make_cluster: MakeCluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Three probes p1, p2, p3; each test leaves them running, healed and on the true time."""
    cluster = make_cluster()
    names = ("p1", "p2", "p3")
    cluster.do(cluster.environment.start([probe(name) for name in names], tmp_path_factory.mktemp("nodes")))
    cluster.do(cluster.until_serving(*names))
    return cluster
