"""One store from outside: what readers see, what a cut leaves, what a restart remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.epoch_file import EpochMap
from system_under_test.storage.errors import BadOffset, MessageTooLarge
from system_under_test.storage.file_cleaner import CleaningRules, Deletion, FileAge, FileCleaner, files_to_delete
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_store import GetStatus, MessageStore, StorageParts, StoreConfig
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config, sync_config

MESSAGE_BYTES = 157
"""Size of a message of topic `t` with a body of 45 bytes."""


def bodies(store: MessageStore, queue_id: int, queue_offset: int = 0) -> list[bytes]:
    found = store.get_messages("t", queue_id, queue_offset, 100)
    return [decode_message(message, 0).body for message in found.messages]


async def copy(master: MessageStore, slave: MessageStore, piece_bytes: int = 100) -> None:
    start = master.min_offset
    if slave.max_offset == slave.min_offset and not slave.knows_beginning_at(start):
        await slave.begin_at(start, master.queue_offsets_at(start), is_part=False)
    offset = slave.max_offset
    while offset < master.max_offset:
        slave.append_replicated(offset, master.read_for_transfer(offset, piece_bytes))
        offset = slave.max_offset


def test_readers_see_nothing_beyond_the_confirm_offset() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, async_config()).boot()
        arrivals: list[tuple[str, int, int]] = []
        store.on_dispatched.append(lambda *arrival: arrivals.append(arrival))
        first, second = store.put("t", 0, b"one"), store.put("t", 1, b"two")
        assert store.get_messages("t", 0, 0, 10).status is GetStatus.NO_MATCHED_LOGIC_QUEUE
        store.advance_confirm_offset(second.end_offset - 1)
        assert (bodies(store, 0), bodies(store, 1)) == ([b"one"], [])
        assert store.dispatched_offset == first.end_offset
        store.advance_confirm_offset(second.end_offset)
        assert bodies(store, 1) == [b"two"]
        assert arrivals == [("t", 0, 1), ("t", 1, 1)]

    simulate(body)


def test_the_confirm_offset_neither_goes_back_nor_passes_the_log() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, async_config()).boot()
        end = store.put("t", 0, b"one").end_offset
        store.advance_confirm_offset(end + 1000)
        assert store.confirm_offset == end
        store.advance_confirm_offset(0)
        assert store.confirm_offset == end

    simulate(body)


@pytest.mark.parametrize(
    ("queue_offset", "status", "next_offset"),
    [
        (0, GetStatus.FOUND, 2),
        (2, GetStatus.OFFSET_OVERFLOW_ONE, 2),
        (3, GetStatus.OFFSET_OVERFLOW_BADLY, 2),
        (-1, GetStatus.OFFSET_TOO_SMALL, 0),
    ],
)
def test_a_read_says_where_to_read_on(queue_offset: int, status: GetStatus, next_offset: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, async_config()).boot()
        store.put("t", 0, b"one")
        store.advance_confirm_offset(store.put("t", 0, b"two").end_offset)
        result = store.get_messages("t", 0, queue_offset, 10)
        assert (result.status, result.next_offset, result.min_offset, result.max_offset) == (status, next_offset, 0, 2)

    simulate(body)


def test_a_read_gives_at_least_one_message_however_small_the_limit() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, async_config()).boot()
        for _ in range(3):
            store.advance_confirm_offset(store.put("t", 0, b"x" * 45).end_offset)
        assert store.get_messages("t", 0, 0, 10, max_bytes=1).next_offset == 1
        assert store.get_messages("t", 0, 0, 10, max_bytes=2 * MESSAGE_BYTES).next_offset == 2

    simulate(body)


def test_a_message_that_fits_no_segment_is_refused_and_leaves_no_trace() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, async_config(1000)).boot()
        with pytest.raises(MessageTooLarge):
            store.put("t", 0, b"x" * 1000)
        assert store.max_offset == 0
        assert store.put("t", 0, b"x").queue_offset == 0

    simulate(body)


def test_a_cut_takes_log_queues_consumer_offsets_and_epochs_with_it_for_good() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(400))
        store = await machine.boot()
        await store.epochs.append(1, 0)
        ends = [store.put("t", 0, b"x" * 45 + bytes([number])).end_offset for number in range(10)]
        await store.epochs.append(2, ends[6])
        store.advance_confirm_offset(ends[-1])
        store.consumer_offsets.commit("g", "t", 0, 9)
        await store.checkpoint()
        await store.truncate(ends[3])
        for _ in range(2):
            assert (store.max_offset, store.flushed_offset, store.confirm_offset) == (ends[3],) * 3
            assert store.queue_range("t", 0) == (0, 4)
            assert store.consumer_offsets.get("g", "t", 0) == 4
            assert store.epochs.map == EpochMap([(1, 0)])
            await machine.lose_power()
            store = await machine.boot()
        put = store.put("t", 0, b"other")
        assert put.queue_offset == 4
        store.advance_confirm_offset(put.end_offset)
        assert bodies(store, 0, 4) == [b"other"]

    simulate(body)


def test_a_confirm_offset_from_before_a_cut_never_comes_back() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config())
        store = await machine.boot()
        first = store.put("t", 0, b"first").end_offset
        store.advance_confirm_offset(store.put("t", 0, b"second").end_offset)
        await store.checkpoint()
        await store.truncate(first)
        await store.flush_to(store.put("t", 0, b"unsure").end_offset, 5)
        await machine.lose_power()
        store = await machine.boot()
        assert store.max_offset > first
        assert store.confirm_offset == first
        assert bodies(store, 0) == [b"first"]

    simulate(body)


def test_a_promoted_replica_numbers_on_behind_what_it_holds_unconfirmed() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, 1, async_config(1000)).boot()
        slave = await Machine(loop, 2, async_config(1000)).boot()
        for number in range(9):
            master.put("t", number % 2, b"x" * 45)
        await copy(master, slave)
        slave.append_replicated(slave.max_offset, b"\0\0\0\x9d\xda\xa3\x20\xa7half a message")
        slave.advance_confirm_offset(2 * MESSAGE_BYTES)
        assert await slave.cut_to_message_boundary() == master.max_offset
        slave.rebuild_queue_offset_table()
        assert slave.put("t", 0, b"").queue_offset == 5
        assert slave.put("t", 1, b"").queue_offset == 4
        assert slave.queue_range("t", 0) == (0, 1)

    simulate(body)


def test_replicated_bytes_have_to_join_the_log() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, async_config(1000)).boot()
        with pytest.raises(BadOffset):
            store.append_replicated(157, b"x")
        store.put("t", 0, b"")
        with pytest.raises(BadOffset):
            store.append_replicated(0, b"x")

    simulate(body)


def test_8_an_empty_slave_starts_at_the_first_file_left_and_gets_the_epoch_left() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(1700))
        master = await machine.boot()
        await master.epochs.append(1, 0)
        for _ in range(10):
            master.put("t", 0, b"x" * 45)
        assert master.max_offset == 1570
        await master.epochs.append(2, 1570)
        for _ in range(5):
            master.put("t", 0, b"x" * 45)
        master.advance_confirm_offset(master.max_offset)
        await master.flush_to(master.max_offset, 5)
        await master.delete_files_before(1700)
        assert (master.min_offset, master.epochs.map) == (1700, EpochMap([(2, 1700)]))
        assert master.queue_range("t", 0) == (10, 15)
        assert master.get_messages("t", 0, 3, 10).next_offset == 10

        slave_machine = Machine(loop, 2, async_config(1700))
        slave = await slave_machine.boot()
        await slave.epochs.append(*master.epochs.map.entries[0])
        await copy(master, slave)
        slave.advance_confirm_offset(master.confirm_offset)
        assert (slave.min_offset, slave.max_offset) == (master.min_offset, master.max_offset)
        for _ in range(2):
            assert (slave.queue_range("t", 0), slave.epochs.map) == ((10, 15), EpochMap([(2, 1700)]))
            assert bodies(slave, 0, 10) == bodies(master, 0, 10)
            await slave_machine.kill()
            slave = await slave_machine.boot()
            slave.advance_confirm_offset(slave.max_offset)
        await machine.lose_power()
        master = await machine.boot()
        assert (master.min_offset, master.queue_range("t", 0)) == (1700, (10, 15))

    simulate(body)


def test_where_a_log_began_anew_is_flushed_with_it_also_by_the_process_after_a_kill() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, 1, async_config(400)).boot()
        for _ in range(6):
            master.put("t", 0, b"x" * 45)
        for seed in range(20):
            machine = Machine(loop, seed, async_config(400))
            slave = await machine.boot()
            await slave.begin_at(400, {}, is_part=False)
            slave.append_replicated(400, master.read_for_transfer(400, 400))
            if seed % 2:
                await slave.flush_to(800, 5)
            else:
                await machine.kill()
                slave = await machine.boot()
            assert (slave.min_offset, slave.flushed_offset) == (400, 800)
            await machine.lose_power()
            slave = await machine.boot()
            assert (slave.min_offset, slave.max_offset) == (400, 800)

    simulate(body)


def test_a_log_cut_before_its_first_byte_is_empty_and_begins_anew_where_a_master_begins() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, 1, async_config(400)).boot()
        machine = Machine(loop, 2, async_config(400))
        slave = await machine.boot()
        for _ in range(6):
            master.put("t", 0, b"m" * 45)
            slave.put("t", 0, b"s" * 45)
        slave.advance_confirm_offset(slave.max_offset)
        await slave.flush_to(slave.max_offset, 5)
        await slave.delete_files_before(800)
        await slave.truncate(500)
        assert (slave.min_offset, slave.max_offset, slave.confirm_offset) == (400, 400, 400)
        await copy(master, slave)
        for _ in range(2):
            assert (slave.min_offset, slave.max_offset) == (0, master.max_offset)
            slave.advance_confirm_offset(slave.max_offset)
            assert bodies(slave, 0) == [b"m" * 45] * 6
            await machine.kill()
            slave = await machine.boot()

    simulate(body)


def test_queues_never_outlive_the_messages_they_point_to() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        for seed in range(20):
            machine = Machine(loop, seed, async_config())
            store = await machine.boot()
            await store.flush_to(store.put("t", 0, b"flushed").end_offset, 5)
            for number in range(5):
                store.put("t", 0, b"unflushed %d" % number)
            store.advance_confirm_offset(store.max_offset)
            await store.checkpoint()
            await machine.lose_power()
            store = await machine.boot()
            seen = store.queue_range("t", 0)[1]
            assert store.confirm_offset == store.max_offset
            assert bodies(store, 0) == [b"flushed", *(b"unflushed %d" % number for number in range(5))][:seen]
            for number in range(5):
                assert store.put("t", 0, b"after %d" % number).queue_offset == seen + number
            store.advance_confirm_offset(store.max_offset)
            assert bodies(store, 0, seen) == [b"after %d" % number for number in range(5)]

    simulate(body)


def rules(**changed: Any) -> CleaningRules:
    return CleaningRules(**{"interval_s": 1.0, "kept_s": 250.0, "hours": frozenset(range(24)), **changed})


def cleaned_config(**changed: Any) -> StoreConfig:
    return replace(async_config(400), cleaning=rules(**changed))


def test_files_expire_once_they_were_full_for_so_long_but_never_the_last_file() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, cleaned_config())
        store = await machine.boot()
        for _ in range(6):
            store.put("t", 0, b"x" * 45)
            store.advance_confirm_offset(store.max_offset)
            await machine.clock.sleep(100)
        # The third message, and with it the second file, came 400 s ago, the fifth 200 s ago.
        assert store.min_offset == 400
        await machine.clock.sleep(60)
        assert (store.min_offset, store.queue_range("t", 0)) == (800, (4, 6))
        await machine.clock.sleep(1_000)
        assert store.min_offset == 800

    simulate(body)


def test_a_file_is_kept_however_the_wall_clock_jumps() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, cleaned_config())
        store = await machine.boot()
        for _ in range(3):
            store.advance_confirm_offset(store.put("t", 0, b"x" * 45).end_offset)
        await machine.clock.sleep(10)
        machine.clock.wall_error_ns = 10**18
        await machine.clock.sleep(100)
        assert store.min_offset == 0
        await machine.clock.sleep(150)
        assert store.min_offset == 400

    simulate(body)


def test_time_in_which_nothing_ran_makes_no_file_older_and_a_restart_makes_none_new() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, cleaned_config())
        store = await machine.boot()
        for _ in range(3):
            store.advance_confirm_offset(store.put("t", 0, b"x" * 45).end_offset)
        await machine.clock.sleep(200)
        await machine.kill()
        await machine.clock.sleep(1000)
        store = await machine.boot()
        await machine.clock.sleep(10)
        assert store.min_offset == 0
        await machine.clock.sleep(45)
        assert store.min_offset == 400

    simulate(body)


def test_a_file_that_was_cut_and_filled_again_is_as_old_as_what_is_in_it() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        for power_is_lost in (False, True):
            machine = Machine(loop, 1, cleaned_config())
            store = await machine.boot()
            ends = [store.put("t", 0, b"x" * 45).end_offset for _ in range(3)]
            await machine.clock.sleep(240)
            await store.truncate(ends[0])
            for _ in range(2):
                store.advance_confirm_offset(store.put("t", 0, b"y" * 45).end_offset)
            await store.flush_to(store.max_offset, 5)
            if power_is_lost:
                await machine.lose_power()
                store = await machine.boot()
                store.advance_confirm_offset(store.max_offset)
            await machine.clock.sleep(240)
            assert store.min_offset == 0
            await machine.clock.sleep(20)
            assert store.min_offset == 400

    simulate(body)


def test_what_is_not_confirmed_is_never_deleted() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, cleaned_config())
        store = await machine.boot()
        ends = [store.put("t", 0, b"x" * 45).end_offset for _ in range(6)]
        store.advance_confirm_offset(ends[2])
        await machine.clock.sleep(1000)
        assert store.min_offset == 400
        store.advance_confirm_offset(ends[-1])
        await machine.clock.sleep(10)
        assert store.min_offset == 800

    simulate(body)


@pytest.mark.parametrize(("is_forced", "left"), [(True, 8000), (False, 0)])
def test_a_disk_that_runs_full_costs_the_oldest_files_where_that_is_wanted(is_forced: bool, left: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        config = cleaned_config(is_forced=is_forced, hours=frozenset())
        machine = Machine(loop, 1, replace(config, segment_bytes=4000))
        store = await machine.boot()
        for _ in range(9):
            store.advance_confirm_offset(store.put("t", 0, b"x" * 1000).end_offset)
        await store.flush_to(store.max_offset, 5)
        machine.faults.capacity_bytes = round(machine.used_bytes / 0.9)
        await machine.clock.sleep(3)
        assert store.min_offset == left

    simulate(body)


def test_which_files_go_is_decided_by_age_hour_and_room() -> None:
    files = [FileAge(100, 300.0), FileAge(200, 260.0), FileAge(300, 10.0), FileAge(400, 5.0)]
    in_the_night = rules(hours=frozenset({4}), files_at_once=3)
    for hour, used_share, expected in (
        (4, 0.1, Deletion(200, False)),
        (5, 0.1, None),
        (5, 0.8, Deletion(200, False)),
        (5, 0.86, Deletion(300, True)),
    ):
        assert files_to_delete(files, in_the_night, hour=hour, used_share=used_share) == expected
    assert files_to_delete(files[2:], in_the_night, hour=4, used_share=0.8) is None
    assert files_to_delete([], in_the_night, hour=4, used_share=0.9) is None


@pytest.mark.parametrize("harmed", ["nothing", "checkpoint", "both"])
def test_a_queue_without_any_message_left_goes_on_where_it_was(harmed: str) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(400))
        store = await machine.boot()
        for _ in range(2):
            store.put("t", 1, b"x" * 45)
        for _ in range(5):
            store.put("t", 0, b"x" * 45)
        store.advance_confirm_offset(store.max_offset)
        await store.flush_to(store.max_offset, 5)
        await store.delete_files_before(800)
        assert store.queue_range("t", 1) == (2, 2)
        assert store.get_messages("t", 1, 0, 10).status is GetStatus.OFFSET_TOO_SMALL
        await (machine.lose_power() if harmed == "both" else machine.kill())
        if harmed != "nothing":
            machine.rot("store/checkpoint", 30)
        store = await machine.boot()
        assert (store.min_offset, store.max_offset) == (800, 1357)
        store.advance_confirm_offset(store.max_offset)
        assert store.queue_range("t", 1) == (2, 2)
        assert store.put("t", 1, b"x").queue_offset == 2

    simulate(body)


def test_the_last_whole_message_is_found_behind_files_that_are_gone() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, 1, async_config(400)).boot()
        for _ in range(6):
            master.put("t", 0, b"x" * 45)
        slave = await Machine(loop, 2, async_config(400)).boot()
        await copy(master, slave, piece_bytes=371)
        slave.advance_confirm_offset(slave.max_offset)
        await slave.flush_to(slave.max_offset, 5)
        await slave.delete_files_before(800)
        assert await slave.cut_to_message_boundary() == master.max_offset

    simulate(body)


def test_a_replica_that_begins_in_the_midst_gives_no_queue_offset_twice() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, 1, async_config(400)).boot()
        for number in (1, 1, 0, 0, 2, 0):
            master.put("t", number, b"x" * 45)
        master.advance_confirm_offset(2 * MESSAGE_BYTES)
        machine = Machine(loop, 2, async_config(400))
        slave = await machine.boot()
        # The last file holds what follows the fourth message; the master itself has dispatched two.
        await slave.begin_at(800, master.queue_offsets_at(800), is_part=True)
        slave.append_replicated(800, master.read_for_transfer(800, 400))
        for _ in range(2):
            assert slave.is_part
            slave.rebuild_queue_offset_table()
            assert [slave.queue_end("t", number) for number in (0, 1, 2)] == [3, 2, 1]
            await slave.flush_to(slave.max_offset, 5)
            await machine.lose_power()
            slave = await machine.boot()
        assert slave.put("t", 1, b"x").queue_offset == 2
        await slave.is_whole_after_all()
        assert not slave.is_part

    simulate(body)


def test_data_from_before_there_were_epochs_is_epoch_0_from_the_logs_start() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        store.put("t", 0, b"old")
        await store.stop()
        await machine.kill()
        store = await machine.boot()
        assert store.epochs.map == EpochMap([(0, 0)])

    simulate(body)


def test_epochs_beyond_the_recovered_log_go_and_one_that_starts_at_its_end_stays() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config())
        store = await machine.boot()
        await store.epochs.append(1, 0)
        end = store.put("t", 0, b"one").end_offset
        await store.epochs.append(2, end)
        await store.epochs.append(3, end + 1)
        await store.flush_to(end, 5)
        await machine.lose_power()
        assert (await machine.boot()).epochs.map == EpochMap([(1, 0), (2, end)])

    simulate(body)


def test_only_an_unclean_end_is_reported_at_the_next_start() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        assert not store.unclean_start
        await store.stop()
        await machine.kill()
        assert not (await machine.boot()).unclean_start
        await machine.kill()
        assert (await machine.boot()).unclean_start

    simulate(body)


def test_a_lost_checkpoint_costs_time_but_no_message_and_confirms_nothing() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(400))
        store = await machine.boot()
        for number in range(8):
            store.put("t", number % 2, b"x" * 45)
        store.advance_confirm_offset(store.max_offset)
        end = store.max_offset
        await store.stop()
        await machine.kill()
        assert machine.rot("store/checkpoint", 20)
        store = await machine.boot()
        assert (store.max_offset, store.confirm_offset, store.queue_range("t", 0)) == (end, 0, (0, 0))
        store.advance_confirm_offset(end)
        assert (store.queue_range("t", 0), store.queue_range("t", 1)) == ((0, 4), (0, 4))

    simulate(body)


@pytest.mark.parametrize("expired", [False, True])
def test_a_consume_queue_that_lost_durable_entries_is_made_of_the_log_again(expired: bool) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(400))
        store = await machine.boot()
        for number in range(12):
            store.put("t", number % 2, b"%02d" % number + b"x" * 43)
        store.advance_confirm_offset(store.max_offset)
        await store.flush_to(store.max_offset, 5)
        if expired:
            await store.delete_files_before(400)
        ranges = [store.queue_range("t", queue_id) for queue_id in (0, 1)]
        whole = [bodies(store, queue_id, least) for queue_id, (least, _) in enumerate(ranges)]
        await store.stop()
        await machine.kill()
        (path,) = (path for path in machine.paths() if "consumequeue/t+0" in path)
        machine.cut_short(path, 45)
        for _ in range(2):
            store = await machine.boot()
            assert [store.queue_range("t", queue_id) for queue_id in (0, 1)] == ranges
            assert [bodies(store, queue_id, least) for queue_id, (least, _) in enumerate(ranges)] == whole
            await machine.kill()
        store = await machine.boot()
        assert store.put("t", 0, b"new").queue_offset == 6
        await store.stop()

    simulate(body)


def test_a_full_disk_refuses_a_put_and_nothing_of_it_is_written() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(1000))
        store = await machine.boot()
        machine.faults.capacity_bytes = 0
        with pytest.raises(OSError, match="no room"):
            store.put("t", 0, b"x")
        assert store.max_offset == 0
        machine.faults.capacity_bytes = None
        assert store.put("t", 0, b"x").queue_offset == 0

    simulate(body)


def test_a_planted_dispatch_limit_shows_what_is_not_confirmed() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        parts = StorageParts(dispatch_limit=lambda confirm_offset, max_offset: max_offset)
        store = await Machine(loop, 1, async_config()).boot(parts)
        store.put("t", 0, b"unconfirmed")
        assert bodies(store, 0) == [b"unconfirmed"]

    simulate(body)


def test_a_file_is_as_old_as_it_was_when_it_was_looked_at_however_long_the_cleaner_had_to_wait() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(400))
        store, host = await machine.boot(), machine.host()
        cleaner = FileCleaner(host, store, CleaningRules(interval_s=1.0, kept_s=3600.0))
        cleaning = host.spawn(cleaner.run(), "cleaner")
        await store._changes.acquire()
        await host.clock.sleep(31)
        for _ in range(3):
            store.put("t", 0, b"x" * 45)
        store._changes.release()
        await host.clock.sleep(10.5)
        cleaning.cancel()
        (file,) = await store.full_files(lambda: 0.0)
        assert file.age_s == pytest.approx(10, abs=0.6)

    simulate(body)
