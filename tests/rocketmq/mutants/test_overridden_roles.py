"""What each planted bug of a broker's role and of its SyncStateSet does where the healthy part does the right thing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.master_connection import MasterConnection
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView
from system_under_test.rocketmq.broker.ha.wire import SlaveHandshake, encode_ack
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.controller.protocol import SyncStateSet
from system_under_test.runtime.host import Connection, Host
from system_under_test.storage.message_store import MessageStore
from tests.references.machine_with_disk import simulate
from tests.rocketmq.mutants.planted_parts import parts_of
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

SECOND = 10**9
CONFIG = BrokerConfig(
    name_servers=(),
    controllers=(),
    ha_batch_bytes=100,
    ha_window_bytes=100,
    min_in_sync_replicas=2,
    max_time_slave_not_caught_up_s=15.0,
)


class Clock:
    """Set by hand; the wall clock is as far off as `wall_off_s` says."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.wall_off_s = 0.0

    def monotonic_ns(self) -> int:
        return int(self.now_s * SECOND)

    def wall_ns(self) -> int:
        return int((self.now_s + self.wall_off_s) * SECOND)


class Slave:
    """The other end of a connection: it acks when it is said to, and swallows what it is sent."""

    remote = "b2"
    closed = False

    def __init__(self) -> None:
        self._acks: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, data: bytes) -> None:
        pass

    async def read_exactly(self, count: int) -> bytes:
        return await self._acks.get()

    async def ack(self, offset: int) -> None:
        self._acks.put_nowait(encode_ack(offset))
        for _ in range(3):
            await asyncio.sleep(0)


def mastership_of(parts: BrokerParts, store: MessageStore, clock: Clock, *members: int) -> Mastership:
    """b1 as master; `members` are in its SyncStateSet."""
    host = SimpleNamespace(clock=clock, log=lambda event, **fields: None, reached=lambda point, **values: None)
    return parts.mastership(
        cast(Host, host),
        store,
        CONFIG,
        own_id=1,
        master_epoch=1,
        epoch_start_offset=0,
        view=SetView(confirmed=SyncStateSet.of(members, 1)),
        own_acked_offset=parts.own_acked_offset,
    )


def with_mastership(name: str | None, look: Callable[[Mastership, Clock, Slave], Awaitable[object]]) -> object:
    """What `look` finds at a master whose log holds three batches, and whose slave has none of it yet."""

    async def body(loop: VirtualTimeLoop) -> object:
        parts, clock, slave = parts_of(name), Clock(), Slave()
        store = await Machine(loop, 1, async_config()).boot(parts.storage)
        await store.epochs.append(1, 0)
        store.put("t", 0, b"x" * 188)
        mastership = mastership_of(parts, store, clock, 1, 2)
        connection = MasterConnection(mastership, cast(Connection, slave), SlaveHandshake(False, False, 2))
        mastership.attach(connection)
        acks = asyncio.ensure_future(connection.run())
        await slave.ack(0)
        found = await look(mastership, clock, slave)
        acks.cancel()
        return found

    return simulate(body)


async def wanted_after_a_silence_with_the_clock_put_back(
    mastership: Mastership, clock: Clock, slave: Slave
) -> tuple[int, ...] | None:
    clock.now_s += 20
    clock.wall_off_s = -20
    return mastership.wanted_members()


async def wanted_after_two_batches_in_20_s(
    mastership: Mastership, clock: Clock, slave: Slave
) -> tuple[int, ...] | None:
    for acked in (100, 200):
        clock.now_s += 10
        await slave.ack(acked)
    return mastership.wanted_members()


async def takes_a_send_alone(mastership: Mastership, clock: Clock, slave: Slave) -> bool:
    mastership.change_view(SetView(confirmed=SyncStateSet.of((1,), 2)))
    return mastership.enough_in_sync()


def test_by_the_wall_clock_a_silent_slave_counts_as_caught_up() -> None:
    look = wanted_after_a_silence_with_the_clock_put_back
    assert with_mastership(None, look) == (1,)
    assert with_mastership("wall-clock-catch-up", look) is None


def test_a_slave_that_is_always_behind_counts_as_caught_up_by_the_batches_it_acks() -> None:
    look = wanted_after_two_batches_in_20_s
    assert with_mastership(None, look) == (1,)
    assert with_mastership("caught-up-by-batch", look) is None


def test_a_master_takes_sends_with_less_than_the_least_of_in_sync_replicas() -> None:
    assert not with_mastership(None, takes_a_send_alone)
    assert with_mastership("no-min-in-sync", takes_a_send_alone)


def test_a_master_that_became_a_slave_keeps_the_masters_id() -> None:
    healthy, planted = parts_of(None).role_id, parts_of("role-id-kept").role_id
    for role_id in (healthy, planted):
        assert role_id(2, False) == 2
        assert role_id(2, True) == 0
    assert healthy(2, False) == 2
    assert planted(2, False) == 0
    assert parts_of("role-id-kept").role_id(2, False) == 2, "another process has not been master"
