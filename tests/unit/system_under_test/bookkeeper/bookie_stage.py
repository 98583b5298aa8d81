"""Bookies as processes on simulated hosts, with a metadata store that all of them share."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.bookkeeper.bookie.client import BookieClient
from system_under_test.bookkeeper.bookie.identity import Registered
from system_under_test.bookkeeper.bookie.message import AddRequest, Code, ReadRequest
from system_under_test.bookkeeper.bookie.service import serve
from system_under_test.bookkeeper.entry import NOTHING, Digest, Entry, encode_entry
from system_under_test.runtime.host import Host
from tests.unit.system_under_test.bookkeeper.metadata_in_memory import MetadataInMemory

PORT = 3181
ADDRESS = f"b1:{PORT}"
SHARED: list[MetadataInMemory] = []
"""The metadata store of the play that is on."""


async def main(host: Host, config: Mapping[str, Any]) -> None:
    await serve(host, config, SHARED[-1])


class Stage:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self.metadata = SHARED[-1]
        self.host = environment.client_host("client")
        self.client = BookieClient(self.host)

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            await self.environment.timeline.sleep(0.1)
        raise AssertionError("it does not come to this")

    async def identity(self, address: str = ADDRESS) -> str:
        """Of the one that is at the address now, once it is up."""
        found: list[str] = []

        def is_up() -> bool:
            registered = {key[9:]: Registered.decode(value) for key, value in self.metadata.values("/bookies/").items()}
            found[:] = [key for key, each in registered.items() if each == Registered(address)]
            return bool(found) and f"/available/{found[0]}" in self.metadata.keys

        await self.until(is_up)
        return found[0]

    async def add(self, bookie: str, entry: int, *, is_recovery: bool = False) -> Code:
        data = encode_entry(Entry(1, entry, NOTHING, 1, b"x"), Digest())
        request = AddRequest(bookie=bookie, data=data, is_recovery=is_recovery)
        return (await self.client.ask(ADDRESS, request, 5.0)).code

    async def read(self, bookie: str, entry: int, *, fences: bool = False) -> Code:
        request = ReadRequest(bookie=bookie, ledger=1, entry=entry, fences=fences)
        return (await self.client.ask(ADDRESS, request, 5.0)).code

    async def again(self, act: str) -> None:
        """The process ends this way, and another one starts."""
        await getattr(self.environment, act)(["b1"])
        self.metadata.lose_session()
        if act != "upgrade":
            await self.environment.boot(["b1"])
        await self.environment.timeline.sleep(5)
        self.client.close()
        self.client = BookieClient(self.host)


def play(
    story: Callable[[Stage], Coroutine[Any, Any, None]],
    *,
    names: Sequence[str] = ("b1",),
    seed: int = 1,
    **settings: object,
) -> Trace:
    trace = Trace()
    SHARED.append(MetadataInMemory())
    program = PythonProgram(main=f"{__name__}:main", config=settings)

    async def whole(environment: SimulatedEnvironment) -> None:
        nodes = [NodeSpec(name=name, groups=("bookies",), program=program, ports=(PORT,)) for name in names]
        await environment.start(nodes, Path(directory))
        await story(Stage(environment))
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=dataclasses.replace(Regime.calm(), fsync_ms=1.0))
    return trace
