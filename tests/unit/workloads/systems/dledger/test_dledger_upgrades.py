"""Members are upgraded one by one under load, in every order: appends are acknowledged all the while, and stay."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import OperationError
from harness.generator import invoke
from tests.unit.workloads.systems.dledger.members_on_hosts import play
from workloads.systems.dledger.adapter import PATIENCE_S, SYSTEM
from workloads.systems.dledger.client import LogClient
from workloads.systems.dledger.nodes import members
from workloads.systems.dledger.settings import DledgerSettings

SETTINGS = DledgerSettings(begins_as_version=1, batch_push=True, ack_durable=True)
NAMES = SETTINGS.names
PRODUCERS = 3
FAILOVER_S = 8.0 * SETTINGS.time_scale + 1.0
"""From a leader's end to the next one's first acknowledgement, by the times of the protocol, and what a client needs to
find it."""


class Load:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self.host = environment.client_host("producer")
        self.acknowledged: dict[int, int] = {}
        """Offset -> message."""
        self.times_s: list[float] = []
        self._next = 0
        self._ends = False

    async def run(self) -> None:
        await asyncio.gather(*(self._produce(number) for number in range(PRODUCERS)))

    async def _produce(self, process: int) -> None:
        client = LogClient(self.host, NAMES, process, PATIENCE_S)
        while not self._ends:
            self._next += 1
            message = self._next
            try:
                done = await client.invoke(invoke("send", {"message": message}))
            except OperationError:
                await self.environment.timeline.sleep(0.05)
                continue
            assert done.value is not None
            assert self.acknowledged.setdefault(done.value["offset"], message) == message
            self.times_s.append(self.environment.timeline.now_ns() / 1e9)
            await self.environment.timeline.sleep(0.08)
        await client.close()

    def end(self) -> None:
        self._ends = True

    async def read(self, node: str) -> dict[int, int]:
        client = LogClient(self.host, (node,), 0, PATIENCE_S)
        found: dict[int, int] = {}
        while True:
            done = await client.invoke(invoke("poll", {}))
            assert done.value is not None
            if not done.value["messages"]:
                return found
            found |= {one["offset"]: one["message"] for one in done.value["messages"]}


@pytest.mark.parametrize("order", [*permutations(NAMES)], ids=" ".join)
def test_in_any_order_no_append_is_lost_and_none_waits_longer_than_for_a_new_leader(order: tuple[str, ...]) -> None:
    async def story(environment: SimulatedEnvironment) -> None:
        load = Load(environment)
        await SYSTEM.ready(SETTINGS, load.host, "log")
        loading = asyncio.ensure_future(load.run())
        await environment.timeline.sleep(2)
        for node in order:
            assert (await environment.upgrade([node])).happened
            await environment.timeline.sleep(FAILOVER_S)
        load.end()
        await loading
        await environment.timeline.sleep(3)
        assert max(later - time for time, later in zip(load.times_s, load.times_s[1:], strict=False)) < FAILOVER_S
        assert len(load.acknowledged) > 200
        found_at = [await load.read(node) for node in NAMES]
        assert found_at[0] == found_at[1] == found_at[2]
        assert load.acknowledged.items() <= found_at[0].items()
        assert len(set(found_at[0].values())) == len(found_at[0])

    play(members(SETTINGS, None), story)
