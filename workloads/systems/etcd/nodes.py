"""Debian's etcd-server 3.4: three members, a node each."""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec

MEMBERS = ("e1", "e2", "e3")
CLIENT_PORT, PEER_PORT = 2379, 2380
IMAGE = DebianPackages(("etcd-server",))


def member(name: str, *, heartbeat_ms: int, election_ms: int) -> NodeSpec:
    peers = ",".join(f"{one}=http://{one}:{PEER_PORT}" for one in MEMBERS)
    argv = (
        *("etcd", "--name", name, "--data-dir", "${home}/etcd"),
        *("--listen-client-urls", f"http://0.0.0.0:{CLIENT_PORT}"),
        *("--advertise-client-urls", f"http://{name}:{CLIENT_PORT}"),
        *("--listen-peer-urls", f"http://0.0.0.0:{PEER_PORT}"),
        *("--initial-advertise-peer-urls", f"http://{name}:{PEER_PORT}"),
        *("--initial-cluster", peers, "--initial-cluster-state", "new"),
        *("--heartbeat-interval", str(heartbeat_ms), "--election-timeout", str(election_ms)),
    )
    command = Command(argv=argv, image=IMAGE, ready=Listening(CLIENT_PORT))
    return NodeSpec(name=name, groups=("members",), program=command, ports=(CLIENT_PORT,), replica=True)
