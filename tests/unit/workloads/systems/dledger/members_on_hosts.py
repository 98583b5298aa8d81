"""DLedger's members as its adapter starts them, on simulated hosts, and one that gives the same answer to all."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    EntriesAnswer,
    GetRequest,
    MetadataAnswer,
    PullRequest,
)
from system_under_test.dledger.message import Code
from system_under_test.dledger.wire import decode_request, encode_answer
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.runtime.host import Host
from workloads.systems.dledger.nodes import PORT

Story = Callable[[SimulatedEnvironment], Coroutine[Any, Any, None]]


def play(nodes: Sequence[NodeSpec], story: Story) -> None:
    """On a quiet network."""

    async def whole(environment: SimulatedEnvironment) -> None:
        await environment.start(nodes, Path(directory))
        await story(environment)
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(1), Trace(), regime=dataclasses.replace(Regime.calm(), fsync_ms=1.0))


async def answering(host: Host, config: Mapping[str, Any]) -> None:
    """A member that answers every request with the code `config["code"]`; the leader is `config["leader"]`."""
    code, leader = Code(config["code"]), config.get("leader")

    def handle(command: RemotingCommand, peer: Peer) -> RemotingCommand:
        asked = decode_request(command.code, command.body)
        answer: AppendAnswer | EntriesAnswer | MetadataAnswer = MetadataAnswer(code=Code.SUCCESS, leader=leader)
        if isinstance(asked.request, AppendRequest):
            answer = AppendAnswer(code=code, term=1, leader=leader)
        elif isinstance(asked.request, GetRequest | PullRequest):
            answer = EntriesAnswer(code=code, term=1, leader=leader)
        return RemotingCommand.response(Code.SUCCESS, body=encode_answer(asked, answer))

    await RemotingServer(host, handle).start(PORT)
    while True:
        await host.clock.sleep(60)
