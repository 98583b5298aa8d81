"""Bookies and the store of their metadata as processes on loopback, with their files on real disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from processes import Processes, free_ports

NODE = "system_under_test.bookkeeper.node:{}"


class Cluster(Processes):
    """One node of the metadata store, and bookies; they live when their sessions do."""

    def __init__(self, directory: Path, bookies: int, settings: Mapping[str, Any], profile: Path | None) -> None:
        super().__init__(directory, profile)
        metadata_port, *ports = free_ports(1 + bookies)
        self.metadata_address = f"127.0.0.1:{metadata_port}"
        self.bookies = [f"b{number}" for number in range(1, 1 + bookies)]
        self.addresses = {f"{name}:{port}": f"127.0.0.1:{port}" for name, port in zip(self.bookies, ports, strict=True)}
        timeouts = {"sessionTimeout": 2_000, "sessionHeartbeat": 500}
        peers = {"metadataSelfId": "m1", "metadataPeers": f"m1-{self.metadata_address}"}
        self.start("m1", NODE.format("metadata"), {**peers, **timeouts})
        for name, port in zip(self.bookies, ports, strict=True):
            self.start_node(name, "bookie", {"bookiePort": port, **settings})

    def make_ready(self) -> None:
        for name in self.bookies:
            self.wait_for(name, "metadata_session")

    def start_node(self, name: str, kind: str, settings: Mapping[str, Any]) -> None:
        config = {"metadataServers": [self.metadata_address], **settings}
        self.start(name, NODE.format(kind), config, self.addresses)


@contextmanager
def running(bookies: int, settings: Mapping[str, Any] | None = None, profile: Path | None = None) -> Iterator[Cluster]:
    with TemporaryDirectory() as directory:
        cluster = Cluster(Path(directory), bookies, settings or {}, profile)
        try:
            cluster.make_ready()
            yield cluster
        finally:
            cluster.stop()
