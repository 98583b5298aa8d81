"""The packets of a node come home, with the times of the run, also those that a cut has dropped."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from probe_cluster import MakeCluster, probe

from harness.environments.environment import Link
from harness.environments.remote import capture

pytestmark = pytest.mark.docker

ECHO = 7001


def test_a_line_that_one_node_sent_another_is_found_in_the_packets_of_both(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, names = make_cluster(captures=True), ("p1", "p2")
    environment = cluster.environment
    cluster.do(environment.start([probe(name) for name in names], tmp_path))
    cluster.do(cluster.until_serving(*names))
    assert cluster.ask("p2", "hold", to="p1")
    from_ns = environment.timeline.now_ns()
    assert cluster.ask("p2", "say", to="p1") == "hello\n"
    until_ns = environment.timeline.now_ns()
    cluster.do(environment.cut([Link("p2", "p1")]))
    assert cluster.ask("p2", "say", to="p1", timeout_s=0.5) == "silence"
    cluster.do(environment.heal())
    cluster.do(environment.stop())
    for name in names:
        sent = hellos(tmp_path / name / "packets.pcap")
        assert from_ns <= sent[0] <= until_ns, (name, sent, from_ns, until_ns)
        assert len(sent) > 1 and sent[1] > until_ns, f"{name} has no packet that the cut dropped"
        about = json.loads((tmp_path / name / "packets.json").read_text())
        assert about["missed"] == 0 and about["packets"] > 10


def hellos(path: Path) -> list[int]:
    """When packets passed in which the line went to port ECHO."""
    found = []
    with path.open("rb") as file:
        for at_ns, length, data in capture.records(file):
            assert length >= len(data)
            ports = capture.ports_of(data)
            if ports and ports[1] == ECHO and payload(data) == b"hello\n":
                found.append(at_ns)
    return found


def payload(packet: bytes) -> bytes:
    """Of TCP over IPv4."""
    begins = (packet[0] & 15) * 4
    total = struct.unpack_from(">H", packet, 2)[0]
    return packet[begins + (packet[begins + 12] >> 4) * 4 : total]
