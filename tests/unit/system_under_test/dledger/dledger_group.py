"""A group of DLedger's node programs on simulated hosts, asked by remoting as its public client asks."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    ClientRequest,
    EntriesAnswer,
    MetadataAnswer,
    MetadataRequest,
    PullRequest,
)
from system_under_test.dledger.message import Code, TransferRequest
from system_under_test.dledger.wire import Addressed, decode_answer, encode_request
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

NAMES = ("n0", "n1", "n2")
PORT = 20911


def peers(names: Sequence[str]) -> str:
    return ";".join(f"{name}-{name}:{PORT}" for name in names)


PEERS = peers(NAMES)


class Group:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self._remoting = RemotingClient(environment.client_host("client"))

    async def ask(self, node: str, request: ClientRequest | TransferRequest) -> Any:
        """The answer, or None if there is none; a connection to a process that has ended is not noticed at once."""
        return await self._ask(node, request) or await self._ask(node, request)

    async def _ask(self, node: str, request: ClientRequest | TransferRequest) -> Any:
        code, body = encode_request(Addressed(group="default", to=node, request=request))
        try:
            answer = await self._remoting.invoke(f"{node}:{PORT}", RemotingCommand.request(code, body=body), 5.0)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return None
        return decode_answer(request, answer.body)

    async def sleep(self, seconds: float) -> None:
        await self.environment.timeline.sleep(seconds)

    async def leader(self, but: str = "") -> str:
        """That another one than this says it is, once it is so."""
        for _ in range(600):
            for name in NAMES:
                answer = await self.ask(name, MetadataRequest()) if name != but else None
                if isinstance(answer, MetadataAnswer) and answer.leader == name:
                    return name
            await self.sleep(0.1)
        raise AssertionError("nobody leads")

    async def append(self, leader: str, *bodies: bytes) -> AppendAnswer:
        answer = await self.ask(leader, AppendRequest(bodies))
        assert isinstance(answer, AppendAnswer)
        return answer

    async def pulled(self, node: str) -> list[bytes]:
        """All that the member shows."""
        found: list[bytes] = []
        begin = 0
        while True:
            answer = await self.ask(node, PullRequest("client", begin))
            assert isinstance(answer, EntriesAnswer) and answer.code is Code.SUCCESS
            if not answer.entries:
                return found
            found += [entry.body for entry in answer.entries]
            begin = answer.entries[-1].index + 1

    async def isolate(self, node: str) -> None:
        """From the other members; clients still reach it."""
        others = [name for name in NAMES if name != node]
        await self.environment.cut(
            [Link(one, other) for other in others for one, other in ((node, other), (other, node))]
        )


def play(
    story: Callable[[Group], Coroutine[Any, Any, None]],
    *,
    names: Sequence[str] = NAMES,
    seed: int = 1,
    fsync_ms: float = 1.0,
    **settings: object,
) -> Trace:
    """On a quiet network."""
    trace = Trace()

    def spec(name: str) -> NodeSpec:
        config = {"selfId": name, "peers": peers(names), "mappedFileSizeForEntryData": 4_096, **settings}
        program = PythonProgram(main="system_under_test.dledger.node:member", config=config)
        return NodeSpec(name=name, groups=("members",), program=program, ports=(PORT,))

    async def whole(environment: SimulatedEnvironment) -> None:
        await environment.start([spec(name) for name in names], Path(directory))
        await story(Group(environment))
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=dataclasses.replace(Regime.calm(), fsync_ms=fsync_ms))
    return trace
