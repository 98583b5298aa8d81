"""OwnEnds in containers, started once for a module: that takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from probe_cluster import Cluster, MakeCluster, probe, run_id

from harness.environments.docker import docker_environment, engine, node_images
from system_under_test.runtime.real import RealHost


@pytest.fixture(scope="session")
def probe_image() -> str:
    """The image of a node whose program is the module `probe`."""
    with engine() as client:
        return node_images(client, [probe("p1")], base=None, say=print)["p1"]


@pytest.fixture(scope="module")
def make_cluster(probe_image: str) -> Iterator[MakeCluster]:
    made: list[Cluster] = []
    with engine() as client:

        def make(wanted: frozenset[str] | None = None, *, captures: bool = False) -> Cluster:
            environment = docker_environment(
                client,
                image_of=lambda node: probe_image,
                client_hosts=RealHost,
                run=run_id(),
                say=print,
                wanted=wanted,
                captures=captures,
            )
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
