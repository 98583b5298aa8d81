"""Debian's etcd-server 3.4: three members, a node each."""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec

MEMBERS = ("e1", "e2", "e3")
CLIENT_PORT, PEER_PORT = 2379, 2380
IMAGE = DebianPackages(("etcd-server",))


def peer_url(name: str) -> str:
    return f"http://{name}:{PEER_PORT}"


def member(name: str, *, heartbeat_ms: int, election_ms: int, joins: bool = False) -> NodeSpec:
    """`joins`: the others have added it to a cluster that exists, and it has nothing on its disk."""
    peers = ",".join(f"{one}={peer_url(one)}" for one in MEMBERS)
    argv = (
        *("etcd", "--name", name, "--data-dir", "${home}/etcd"),
        *("--listen-client-urls", f"http://0.0.0.0:{CLIENT_PORT}"),
        *("--advertise-client-urls", f"http://{name}:{CLIENT_PORT}"),
        *("--listen-peer-urls", f"http://0.0.0.0:{PEER_PORT}"),
        *("--initial-advertise-peer-urls", peer_url(name)),
        *("--initial-cluster", peers, "--initial-cluster-state", "existing" if joins else "new"),
        *("--heartbeat-interval", str(heartbeat_ms), "--election-timeout", str(election_ms)),
    )
    command = Command(argv=argv, image=IMAGE, ready=Listening(CLIENT_PORT))
    return NodeSpec(name=name, groups=("members",), program=command, ports=(CLIENT_PORT,), replica=True)
