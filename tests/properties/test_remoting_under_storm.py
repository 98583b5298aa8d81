"""Remoting while links are cut and servers die: at most once, never another one's answer, definite means definite."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import RemotingServer
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

SERVERS = ("s1", "s2")
TIMEOUT_S = 2.0
EXECUTED: Counter[str] = Counter()


async def serve(host: Any, _: object) -> None:
    def handle(command: RemotingCommand, peer: object) -> Any:
        EXECUTED[command.ext_fields["id"]] += 1
        answer = RemotingCommand.response(0, command.ext_fields)
        return answer if command.code == 1 else later(answer)

    async def later(answer: RemotingCommand) -> RemotingCommand:
        await host.clock.sleep(host.random.uniform(0, 1.5))
        return answer

    await RemotingServer(host, handle).start(1)
    await asyncio.Event().wait()


class Outcomes:
    def __init__(self) -> None:
        self.ids: dict[str, list[str]] = {"ok": [], "definite": [], "indefinite": []}

    async def ask(self, client: RemotingClient, clock: Any, request_id: str, server: str, code: int) -> None:
        began_ns = clock.monotonic_ns()
        try:
            command = RemotingCommand.request(code, {"id": request_id})
            answer = await client.invoke(f"{server}:1", command, TIMEOUT_S)
            assert answer.ext_fields == {"id": request_id}
            outcome = "ok"
        except ConnectFailed:
            outcome = "definite"
        except (ConnectionClosed, TimeoutError):
            outcome = "indefinite"
        self.ids[outcome].append(request_id)
        assert (clock.monotonic_ns() - began_ns) / 1e9 < TIMEOUT_S + 0.1


async def storm(environment: SimulatedEnvironment, draw: Any) -> None:
    """Cuts, kills and power losses with healing in between, each by the seed; everything is healed in the end."""
    for _ in range(15):
        await environment.timeline.sleep(draw.uniform(0.1, 2.0))
        server = draw.choice(SERVERS)
        match draw.randrange(5):
            case 0:
                await environment.cut([Link("client", server)])
            case 1:
                await environment.cut([Link(server, "client")])
            case 2:
                await environment.kill([server])
            case 3:
                await environment.power_off([server])
            case 4:
                await environment.pause([server])
        await environment.timeline.sleep(draw.uniform(0.1, 4.0))
        await environment.heal()
        await environment.resume(SERVERS)
        await environment.boot(SERVERS)


@pytest.mark.parametrize("root", range(8))
def test_every_request_ends_in_time_and_is_executed_as_often_as_its_outcome_says(tmp_path: Path, root: int) -> None:
    seed = Seed(root)
    outcomes = Outcomes()
    EXECUTED.clear()

    async def main(environment: SimulatedEnvironment) -> None:
        await environment.start(
            [NodeSpec(name=name, groups=(), program=PythonProgram(main=f"{__name__}:serve")) for name in SERVERS],
            tmp_path,
        )
        host = environment.client_host("client")
        client = RemotingClient(host)
        draw = seed.child("requests").stream()
        async with asyncio.TaskGroup() as group:
            storming = group.create_task(storm(environment, seed.child("storm").stream()))
            number = 0
            while not storming.done():
                number += 1
                ask = outcomes.ask(client, host.clock, str(number), draw.choice(SERVERS), draw.randrange(1, 3))
                group.create_task(ask)
                await environment.timeline.sleep(draw.expovariate(20))
        await environment.timeline.sleep(120)
        for server in SERVERS:
            answer = await client.invoke(f"{server}:1", RemotingCommand.request(1, {"id": f"calm {server}"}), 30)
            assert answer.ext_fields == {"id": f"calm {server}"}
        assert not environment.panics()

    run_simulation(main, seed, Trace())
    assert set(EXECUTED.values()) == {1}
    assert not [request_id for request_id in outcomes.ids["definite"] if EXECUTED[request_id]]
    assert not [request_id for request_id in outcomes.ids["ok"] if not EXECUTED[request_id]]
    assert all(outcomes.ids.values()), {name: len(ids) for name, ids in outcomes.ids.items()}
