"""A cluster of probes in containers, as the tests see it."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from harness.environments.remote.environment import RemoteEnvironment
from harness.program import PythonProgram
from harness.system import NodeSpec
from tests.between import Between, narrowest

ASK = 7000
ANSWER_TIMEOUT_S = 20.0
READINGS = 5
"""Of a clock, one of which even a busy machine leaves alone."""


def probe(name: str, function: str = "main") -> NodeSpec:
    main = f"probe:{function}"
    return NodeSpec(
        name=name, groups=("probes",), program=PythonProgram(main=main, config={"name": name}), ports=(ASK,)
    )


def run_id() -> str:
    return f"stormproof-test-{secrets.token_hex(4)}"


class Cluster:
    """An environment with a loop of its own, driven from plain test functions."""

    def __init__(self, environment: RemoteEnvironment, client: Any) -> None:
        self.environment = environment
        self.client = client
        self.machines: Any = environment.machines
        self.run = self.machines.run
        self._loop = asyncio.new_event_loop()

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def ask(self, name: str, what: str, **rest: Any) -> Any:
        return self.do(self.asked(name, what, **rest))

    async def asked(self, name: str, what: str, **rest: Any) -> Any:
        host = self.environment.client_host("asker")
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            connection = await host.network.connect(f"{name}:{ASK}", 5.0)
            connection.write(json.dumps({"do": what, **rest}).encode() + b"\n")
            answer = bytearray()
            while not answer.endswith(b"\n"):
                answer += await connection.read_exactly(1)
            connection.close()
            return json.loads(answer)

    async def until_serving(self, *names: str) -> None:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            for name in names:
                while True:
                    try:
                        await self.asked(name, "time")
                    except Exception as error:  # noqa: BLE001  # whatever it is, it must end within the bound
                        print(f"{name} does not serve yet: {error!r}", file=sys.stderr)
                        await asyncio.sleep(0.05)
                    else:
                        break

    def leftovers(self) -> list[str]:
        return leftovers(self.client, self.run)

    def close(self) -> None:
        self._loop.close()


def clock_error_s(cluster: Cluster, name: str) -> Between:
    """How far a node's wall clock is off, by what the node itself reads.

    Monotonic time is one and the same on all of one kernel, and no clock that is set changes it."""

    def read() -> Between:
        asked = cluster.ask(name, "time")
        return _ahead_s(asked["monotonic_ns"], asked["wall_ns"], asked["monotonic_until_ns"])

    return narrowest([read() for _ in range(READINGS)]).minus(true_clock_s())


def true_clock_s() -> Between:
    """How far this process's wall clock is ahead of monotonic time."""
    return narrowest([_ahead_s(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(READINGS)])


def _ahead_s(from_ns: int, wall_ns: int, until_ns: int) -> Between:
    return Between((wall_ns - until_ns) / 1e9, (wall_ns - from_ns) / 1e9)


def leftovers(client: Any, run: str) -> list[str]:
    filters = {"label": f"stormproof.run={run}"}
    found = [*client.containers.list(all=True, filters=filters), *client.networks.list(filters=filters)]
    return [one.name for one in found]


class MakeCluster(Protocol):
    def __call__(self, wanted: frozenset[str] = ..., *, captures: bool = ...) -> Cluster: ...
