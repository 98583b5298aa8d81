"""Nodes of the metadata store and processes that use it, on simulated hosts."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.metadata.client import MetadataClient
from system_under_test.metadata.node import serve
from system_under_test.metadata.tenure import take
from system_under_test.node.assembly import Assembly
from system_under_test.runtime.host import Host

NODES = ("m1", "m2", "m3")
OWNERS = ("o1", "o2")
ADDRESSES = tuple(f"{node}:9200" for node in NODES)
SETTINGS = {
    "sessionTimeout": 2_000,
    "sessionHeartbeat": 500,
    "raftHeartbeatInterval": 50,
    "raftMinElectionTimeout": 300,
    "raftMaxElectionTimeout": 600,
}


async def node(host: Host, config: Mapping[str, Any]) -> None:
    """A node's program."""
    await serve(host, Assembly(host, config, ModuleType("no planted bugs")))


async def owner(host: Host, config: Mapping[str, Any]) -> None:
    """The program of a process that owns `/owner` whenever nobody else does."""
    client = MetadataClient(host, ADDRESSES, answer_timeout_s=0.5)
    await client.start()
    try:
        while True:
            tenure = await take(client, "/owner", host.name)
            host.log("owns", version=tenure.version)
            await client.session_other_than(tenure.session)
            host.log("owned")
    finally:
        await client.stop()


class Group:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self._clients = 0

    def client(self, prefer: str | None = None, timeout_s: float = 5.0) -> MetadataClient:
        """On a host of its own, as if it were started."""
        self._clients += 1
        host = self.environment.client_host(f"client-{self._clients}")
        return MetadataClient(host, ADDRESSES, timeout_s=timeout_s, answer_timeout_s=0.5, prefer=prefer)

    async def sleep(self, seconds: float) -> None:
        await self.environment.timeline.sleep(seconds)

    def events(self, name: str, *kinds: str) -> list[dict[str, Any]]:
        """What a node or an owner has said of these kinds, in order."""
        events = map(json.loads, self.environment.events()[name])
        return [event for event in events if event["event"] in kinds]

    def leader(self) -> str:
        """The node that became active in the newest term."""
        terms = {event["term"]: name for name in NODES for event in self.events(name, "leader")}
        return terms[max(terms)]

    async def isolate(self, name: str) -> None:
        """From the other nodes; clients still reach it."""
        others = [other for other in NODES if other != name]
        await self.environment.cut([Link(*ends) for other in others for ends in ((name, other), (other, name))])


def play(
    story: Callable[[Group], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    owners: int = 0,
    regime: Regime | None = None,
    **settings: object,
) -> Trace:
    """On a quiet network, unless another regime is given; for a group of which nobody knows yet who leads."""
    trace = Trace()
    peers = ";".join(f"{name}-{address}" for name, address in zip(NODES, ADDRESSES, strict=True))

    def spec(name: str) -> NodeSpec:
        config = {"metadataPeers": peers, "metadataSelfId": name, **SETTINGS, **settings} if name in NODES else {}
        program = PythonProgram(main=f"{__name__}:{'node' if name in NODES else 'owner'}", config=config)
        return NodeSpec(name=name, groups=("metadata" if name in NODES else "owners",), program=program)

    async def whole(environment: SimulatedEnvironment) -> None:
        await environment.start([spec(name) for name in (*NODES, *OWNERS[:owners])], Path(directory))
        await story(Group(environment))
        assert environment.panics() == {}
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=regime or dataclasses.replace(Regime.calm(), fsync_ms=1.0))
    return trace
