"""What each planted bug of acks, confirm offsets, epochs and cuts does where the healthy part does the right thing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView, SlaveProgress
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.controller.protocol import SyncStateSet
from system_under_test.runtime.host import Host
from system_under_test.storage.epoch_file import EpochEntry, EpochFile, EpochMap
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_store import MessageStore
from tests.references.machine_with_disk import simulate
from tests.rocketmq.mutants.planted_parts import parts_of
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

HEALTHY = BrokerParts()
QUIET = cast(Host, SimpleNamespace(reached=lambda point, **values: None, log=lambda event, **fields: None))
EPOCHS = EpochMap([(1, 0), (2, 900)])


class Slave:
    """A connection that a mastership serves, as far as acks are concerned."""

    heard_ns = 0

    def __init__(self, mastership: Mastership, broker_id: int) -> None:
        self.broker_id = broker_id
        self.progress: SlaveProgress | None = None
        self.is_closed = False
        self._mastership = mastership
        mastership.attach(self)

    def ack(self, offset: int) -> None:
        self.progress = SlaveProgress(acked_offset=offset, caught_up_ns=0, electable=True)
        self._mastership.acked(self, offset)

    def pump(self) -> None: ...

    def tell_confirm_offset(self) -> None: ...

    def housekeep(self, now_ns: int) -> None: ...

    def close(self) -> None:
        self.is_closed = True


def at_a_store(name: str, story: Callable[[Machine, BrokerParts], Awaitable[object]]) -> tuple[object, object]:
    """What the story comes to, (healthy, planted)."""

    async def both(loop: VirtualTimeLoop) -> tuple[object, object]:
        return (
            await story(Machine(loop, 1, async_config()), HEALTHY),
            await story(Machine(loop, 1, async_config()), parts_of(name)),
        )

    return simulate(both)


Look = Callable[[Mastership, int], Awaitable[object]]


def at_a_master(name: str, look: Look, *members: int) -> tuple[object, object]:
    """What `look` finds, (healthy, planted), at master b1 whose log ends at the offset that it is given.

    `members` are in its SyncStateSet, and all of them have to ack.
    """

    async def found(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        await store.epochs.append(1, 0)
        end = store.put("t", 0, b"x").end_offset
        mastership = parts.mastership(
            QUIET,
            store,
            BrokerConfig(name_servers=(), controllers=(), all_ack_in_sync_state_set=True),
            own_id=1,
            master_epoch=1,
            epoch_start_offset=0,
            view=SetView(confirmed=SyncStateSet.of(members, 1)),
            own_acked_offset=parts.own_acked_offset,
        )
        return await look(mastership, end)

    return at_a_store(name, found)


def test_a_slave_that_is_proposed_need_not_ack() -> None:
    view = SetView(confirmed=SyncStateSet.of((1, 2, 3), 4))
    planted = parts_of("expand-local-ack").begin_alter(view, (1, 2, 4))
    assert HEALTHY.begin_alter(view, (1, 2, 4)).must_ack == (1, 2, 3, 4)
    assert planted.must_ack == (1, 2, 3)
    assert planted.proposed is not None, "the Alter is open: nothing else is proposed meanwhile"


def test_two_connections_of_one_slave_count_for_two_members() -> None:
    async def replicated(mastership: Mastership, end: int) -> object:
        put = mastership.replicated(end)
        for _ in range(2):
            Slave(mastership, 2).ack(end)
        return put.done()

    assert at_a_master("double-connection-ack", replicated, 1, 2, 3) == (False, True)


def test_the_older_connection_of_a_slave_is_closed_with_the_mastership() -> None:
    async def closed(mastership: Mastership, end: int) -> object:
        older, newer = Slave(mastership, 2), Slave(mastership, 2)
        before = older.is_closed
        mastership.end()
        return before, older.is_closed, newer.is_closed

    assert at_a_master("double-connection-ack", closed, 1, 2) == ((True, True, True), (False, True, True))


def test_one_ack_of_each_member_is_enough_however_acks_are_counted() -> None:
    async def replicated(mastership: Mastership, end: int) -> object:
        put = mastership.replicated(end)
        slaves = [Slave(mastership, broker_id) for broker_id in (2, 3)]
        slaves[0].ack(end)
        early = put.done()
        slaves[1].ack(end)
        return early, put.done()

    for name in ("double-connection-ack", "outsider-ack", "confirm-skips-missing"):
        assert at_a_master(name, replicated, 1, 2, 3) == ((False, True), (False, True))


def test_a_slave_outside_of_the_set_acks_for_a_member() -> None:
    async def replicated(mastership: Mastership, end: int) -> object:
        put = mastership.replicated(end)
        Slave(mastership, 2).ack(0)
        Slave(mastership, 3).ack(end)
        return put.done()

    assert at_a_master("outsider-ack", replicated, 1, 2) == (False, True)


def test_a_put_that_waits_when_the_role_is_lost_counts_as_replicated() -> None:
    async def replicated(mastership: Mastership, end: int) -> object:
        put = mastership.replicated(end)
        mastership.end()
        return put.result()

    assert at_a_master("demotion-acks", replicated, 1, 2, 3) == (False, True)


def test_the_confirm_offset_moves_on_without_a_member_that_is_disconnected() -> None:
    async def confirmed(mastership: Mastership, end: int) -> object:
        put = mastership.replicated(end)
        Slave(mastership, 2).ack(end)
        return mastership.confirm_offset == end, put.done()

    assert at_a_master("confirm-skips-missing", confirmed, 1, 2, 3) == ((False, False), (True, False))


def test_what_a_lagging_slave_writes_as_master_is_readable_at_once() -> None:
    async def readable(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        store.advance_confirm_offset(parts.slave_confirm_offset(0, 1000, store.max_offset))
        store.put("t", 0, b"nobody else has it")
        return len(store.get_messages("t", 0, 0, 10).messages)

    assert at_a_store("confirm-without-min", readable) == (0, 1)


def test_a_tail_beyond_the_lesser_end_is_kept() -> None:
    returning = EpochMap([(1, 0)])
    planted = parts_of("truncate-to-max").truncation_point
    assert HEALTHY.truncation_point(returning, 1000, EPOCHS, 1300) == 900
    assert planted(returning, 1000, EPOCHS, 1300) == 1000
    assert planted(EpochMap([(3, 0)]), 1000, EPOCHS, 1300) is None


def test_what_was_cut_comes_back_with_a_restart_and_writes_go_over_it() -> None:
    async def letters(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        kept = store.put("t", 0, b"kept").end_offset
        store.put("t", 0, b"cut 1")
        end = store.put("t", 0, b"cut 2").end_offset
        await store.truncate(kept)
        assert store.max_offset == kept
        store.put("t", 0, b"new 1")
        await machine.kill()
        store = await machine.boot(parts.storage)
        store.advance_confirm_offset(end)
        return bodies(store)

    assert at_a_store("truncate-not-durable", letters) == ([b"kept", b"new 1"], [b"kept", b"new 1", b"cut 2"])


def bodies(store: MessageStore) -> list[bytes]:
    return [decode_message(raw, 0).body for raw in store.get_messages("t", 0, 0, 100).messages]


def entered(name: str, *entries: tuple[int, int], master_epoch: int, start_offset: int) -> tuple[object, object]:
    """The epochs, (healthy, planted), after a master has entered an epoch."""

    async def epochs_of(machine: Machine, parts: BrokerParts) -> object:
        epochs: EpochFile = (await machine.boot(parts.storage)).epochs
        await epochs.replace(EpochMap(entries))
        entry = await parts.enter_epoch(QUIET, epochs, master_epoch, start_offset)
        assert entry == epochs.map.last
        return list(epochs.map)

    return at_a_store(name, epochs_of)


def test_an_epoch_that_starts_where_the_one_before_started_is_not_recorded() -> None:
    assert entered("equal-start-rejected", (1, 0), (2, 900), master_epoch=3, start_offset=900) == (
        [(1, 0), (2, 900), (3, 900)],
        [(1, 0), (2, 900)],
    )
    recorded = [(1, 0), (2, 900), (3, 901)]
    assert entered("equal-start-rejected", (1, 0), (2, 900), master_epoch=3, start_offset=901) == (recorded, recorded)
    assert entered("equal-start-rejected", master_epoch=1, start_offset=0) == ([(1, 0)], [(1, 0)])


def test_a_restarted_masters_epoch_starts_anew() -> None:
    assert entered("same-epoch-remaster", (1, 0), (2, 900), master_epoch=2, start_offset=1200) == (
        [(1, 0), (2, 900)],
        [(1, 0), (2, 1200)],
    )
    assert HEALTHY.gives_up(True, 2, 2)
    assert not parts_of("same-epoch-remaster").gives_up(True, 2, 2)


def test_a_batch_goes_on_beyond_its_epoch() -> None:
    entries = (EpochEntry(1, 0), EpochEntry(2, 900))
    planted = parts_of("cross-epoch-batch").batch_end
    assert (HEALTHY.batch_end(entries, 0, 1300), planted(entries, 0, 1300)) == (900, 1300)
    assert (HEALTHY.batch_end(entries, 1, 1300), planted(entries, 1, 1300)) == (1300, 1300)


@pytest.mark.parametrize("times", [1, 3])
def test_the_newest_epoch_is_lost_with_the_power_and_not_with_the_process(times: int) -> None:
    """The simulated disk keeps all, nothing or pieces of what was not fsynced, by seed: some seed loses the newest."""

    async def epochs_after(machine: Machine, parts: BrokerParts, is_power_lost: bool) -> EpochMap:
        store = await machine.boot(parts.storage)
        for epoch in range(1, times + 1):
            await store.epochs.append(epoch, 0)
        await (machine.lose_power() if is_power_lost else machine.kill())
        return (await machine.boot(parts.storage)).epochs.map

    async def seen(loop: VirtualTimeLoop) -> tuple[set[int], set[int], set[int]]:
        planted = parts_of("epoch-not-durable")
        sizes: tuple[set[int], set[int], set[int]] = set(), set(), set()
        for seed in range(8):
            sizes[0].add(len(await epochs_after(Machine(loop, seed, async_config()), HEALTHY, True)))
            sizes[1].add(len(await epochs_after(Machine(loop, seed, async_config()), planted, True)))
            sizes[2].add(len(await epochs_after(Machine(loop, seed, async_config()), planted, False)))
        return sizes

    assert simulate(seen) == ({times}, {max(1, times - 1), times}, {times})
