"""Nodes of CMQ on simulated hosts, and who asks them."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.environments.environment import Effect, Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.cmq import wire
from system_under_test.cmq.wire import Code, Pulled
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

NODES = ("n1", "n2", "n3")
PORT = 9300
SETTINGS = {"groups": 1, "visibility": 1_000, "fileBytes": 1024, "messageBytes": 256, "spread": False}
PATIENCE_S = 5.0


class Cluster:
    """Nodes may be asked from any task of the story."""

    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self._remoting = RemotingClient(environment.client_host("asker"))

    async def sleep(self, seconds: float) -> None:
        await self.environment.timeline.sleep(seconds)

    async def ask(self, node: str, command: RemotingCommand, timeout_s: float = PATIENCE_S) -> RemotingCommand:
        return await self._remoting.invoke(f"{node}:{PORT}", command, timeout_s)

    async def leader(self, group: int = 1, among: tuple[str, ...] = NODES) -> str:
        """The one of these that leads, as soon as one does."""
        while True:
            for node in among:
                try:
                    answer = await self.ask(node, wire.status(), 0.2)
                except (ConnectFailed, ConnectionClosed, TimeoutError):
                    continue
                if any(one["group"] == group and one["leads"] for one in wire.decode_status(answer.body)):
                    return node
            await self.sleep(0.02)

    async def done(self, command: RemotingCommand, among: tuple[str, ...] = NODES) -> RemotingCommand:
        """The answer of the leader, which is a success."""
        answer = await self.ask(await self.leader(among=among), command)
        assert answer.code == Code.SUCCESS, answer.remark
        return answer

    async def create(self, *queues: str) -> None:
        for queue in queues:
            await self.done(wire.create(queue))

    async def produce(self, queue: str, *bodies: bytes, among: tuple[str, ...] = NODES) -> int:
        return wire.decode_produced((await self.done(wire.produce(queue, bodies), among)).body)

    async def pull(self, queue: str, most: int = 16, wait_ms: int = 0, among: tuple[str, ...] = NODES) -> Pulled:
        return wire.decode_pulled((await self.done(wire.pull(queue, most, wait_ms), among)).body)

    async def ack(self, queue: str, *numbers: int, among: tuple[str, ...] = NODES) -> tuple[bool, ...]:
        return wire.decode_acknowledged((await self.done(wire.ack(queue, numbers), among)).body, len(numbers))

    async def all_messages(self, queue: str, among: tuple[str, ...] = NODES) -> dict[int, bytes]:
        """All that is not acknowledged, once nobody holds it any more."""
        await self.sleep(1.5)
        found: dict[int, bytes] = {}
        while True:
            pulled = await self.pull(queue, among=among)
            found |= dict(pulled.messages)
            if len(found) == pulled.left:
                return found

    def events(self, node: str, *kinds: str) -> list[dict[str, Any]]:
        """What a node has said of these kinds, in order."""
        events = map(json.loads, self.environment.events()[node])
        return [event for event in events if event["event"] in kinds]

    def strike(self, node: str, point: str, verb: Callable[[list[str]], Coroutine[Any, Any, Effect]]) -> list[str]:
        """Do this to the node in the very step in which it reaches the point the next time; who was struck is in the
        list that is returned then."""
        struck: list[str] = []

        def reached(at: str, what: str) -> None:
            if (at, what) == (node, point) and not struck:
                struck.append(at)
                with suppress(StopIteration):
                    verb([at]).send(None)

        self.environment.moments.on_point(reached)
        return struck

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.sleep(0.01)

    async def isolate(self, node: str) -> None:
        """From the other nodes; clients still reach it."""
        others = [other for other in self.environment.events() if other != node]
        await self.environment.cut([Link(*ends) for other in others for ends in ((node, other), (other, node))])


def spec(name: str, **settings: object) -> NodeSpec:
    peers = ";".join(f"{node}-{node}:{PORT}" for node in dict.fromkeys((*NODES, name)))
    config = {"peers": peers, "selfId": name, **SETTINGS, **settings}
    return NodeSpec(
        name=name, groups=("nodes",), program=PythonProgram(main="system_under_test.cmq.node:node", config=config)
    )


def play(
    story: Callable[[Cluster], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    regime: Regime | None = None,
    panics: tuple[str, ...] | None = (),
    others: tuple[NodeSpec, ...] = (),
    **settings: object,
) -> Trace:
    """On a quiet network, unless another regime is given. `panics`: the nodes that end by themselves; None: any may."""
    trace = Trace()

    async def whole(environment: SimulatedEnvironment) -> None:
        await environment.start([*(spec(name, **settings) for name in NODES), *others], Path(directory))
        await story(Cluster(environment))
        assert panics is None or tuple(environment.panics()) == panics
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=regime or dataclasses.replace(Regime.calm(), fsync_ms=1.0))
    return trace
