"""Nodes that answer clients of CMQ as a cluster would in which one node leads every group, without being one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.cmq import wire
from system_under_test.cmq.wire import Code, Pulled, Request
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.runtime.host import Host
from workloads.systems.cmq.nodes import PORT
from workloads.systems.cmq.settings import CmqSettings

SETTINGS = CmqSettings()


@dataclass(slots=True)
class Queue:
    bodies: list[bytes] = field(default_factory=list)
    acknowledged: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    """Until somebody lets them go."""


@dataclass(slots=True)
class Cluster:
    """What all nodes share, and a test changes."""

    leader: str = "n2"
    queues: dict[str, Queue] = field(default_factory=dict)
    codes: dict[Request, Code] = field(default_factory=dict)
    """What kinds of requests are answered with, where that is no success."""
    silent: set[Request] = field(default_factory=set)
    """Kinds of requests that are carried out, and not answered."""
    members: dict[int, set[str]] = field(
        default_factory=lambda: {number: set(SETTINGS.names) for number in range(1, SETTINGS.groups + 1)}
    )
    """Group -> its nodes."""
    unwilling: set[int] = field(default_factory=set)
    """Groups whose members cannot change now."""
    asked: list[tuple[str, Request]] = field(default_factory=list)
    """(node, kind) of all that came."""

    def put(self, queue: str, *values: int) -> Queue:
        found = self.queues.setdefault(queue, Queue())
        found.bodies += [b"%d" % value for value in values]
        return found

    def answer(self, node: str, command: RemotingCommand) -> RemotingCommand:
        request = Request(command.code)
        self.asked.append((node, request))
        if request is Request.STATUS:
            of_each = {"term": 1, "leader": self.leader, "leads": node == self.leader, "membershipIndex": 1}
            groups = [
                {**of_each, "group": number, "members": sorted(members), "learners": []}
                for number, members in self.members.items()
            ]
            return RemotingCommand.response(Code.SUCCESS, body=wire.encode_status(groups))
        if node != self.leader:
            return RemotingCommand.response(Code.NOT_LEADER, {"leader": self.leader})
        if request in self.codes:
            return RemotingCommand.response(self.codes[request])
        if request in (Request.ADD, Request.REMOVE):
            return RemotingCommand.response(self._changed(request, command))
        if request is Request.PULL and command.ext_fields["queue"].endswith("-of-nobody"):
            return RemotingCommand.response(Code.UNKNOWN_QUEUE)
        queue = self.queues.setdefault(command.ext_fields["queue"], Queue())
        return RemotingCommand.response(Code.SUCCESS, body=self._done(request, command, queue))

    def _changed(self, request: Request, command: RemotingCommand) -> Code:
        group, node = int(command.ext_fields["group"]), command.ext_fields["node"]
        is_gone = request is Request.REMOVE and node not in self.members[group]
        if group in self.unwilling or is_gone:
            return Code.UNFIT_CHANGE
        (self.members[group].add if request is Request.ADD else self.members[group].remove)(node)
        return Code.SUCCESS

    def _done(self, request: Request, command: RemotingCommand, queue: Queue) -> bytes:
        if request is Request.PRODUCE:
            queue.bodies += wire.bodies_of(command)
            return wire.produced(len(queue.bodies) - 1)
        left = [number for number in range(len(queue.bodies)) if number not in queue.acknowledged]
        if request is Request.PULL:
            free = [number for number in left if number not in queue.held][: int(command.ext_fields["most"])]
            queue.held |= set(free)
            return wire.encode_pulled(Pulled(tuple((number, queue.bodies[number]) for number in free), len(left)))
        if request is Request.ACK:
            numbers = wire.numbers_of(command)
            newly = [number not in queue.acknowledged for number in numbers]
            queue.acknowledged |= set(numbers)
            return wire.acknowledged(newly)
        return b""


CLUSTERS: dict[str, Cluster] = {}
"""Of the story that is played."""
Story = Callable[[SimulatedEnvironment, Cluster], Coroutine[Any, Any, None]]


async def answering(host: Host, config: Mapping[str, Any]) -> None:
    cluster = CLUSTERS[config["cluster"]]

    async def handle(command: RemotingCommand, peer: Peer) -> RemotingCommand:
        answer = cluster.answer(host.name, command)
        while host.name == cluster.leader and Request(command.code) in cluster.silent:
            await host.clock.sleep(60)
        return answer

    await RemotingServer(host, handle).start(PORT)
    while True:
        await host.clock.sleep(60)


def play(story: Story) -> None:
    """On a quiet network."""
    cluster = Cluster()
    program = PythonProgram(main=f"{__name__}:answering", config={"cluster": "the only one"})
    nodes = [NodeSpec(name=name, groups=(), program=program) for name in SETTINGS.names]

    async def whole(environment: SimulatedEnvironment) -> None:
        CLUSTERS["the only one"] = cluster
        await environment.start(nodes, Path(directory))
        await story(environment, cluster)
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(1), Trace(), regime=Regime.calm())
