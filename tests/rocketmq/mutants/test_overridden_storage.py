"""What each planted bug of a broker's store does where the healthy part does the right thing, at the part itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.filter.subscription import filter_of
from system_under_test.storage.batch import NewMessage
from system_under_test.storage.epoch_file import EpochMap
from system_under_test.storage.errors import StorageCorrupt, StorageFailed
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_store import MessageStore
from tests.references.machine_with_disk import simulate
from tests.rocketmq.mutants.planted_parts import parts_of
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

MESSAGE_BYTES = 157
"""Size of a message of topic `t` with a body of 45 bytes."""

Story = Callable[[Machine, BrokerParts], Awaitable[object]]


def come_to(story: Story, name: str) -> tuple[object, object]:
    """What the story comes to with the healthy parts, and with the planted bug."""

    async def body(loop: VirtualTimeLoop) -> tuple[object, object]:
        return (
            await story(Machine(loop, 1, async_config()), parts_of(None)),
            await story(Machine(loop, 1, async_config()), parts_of(name)),
        )

    return simulate(body)


def bodies(store: MessageStore) -> list[bytes]:
    return [decode_message(raw, 0).body for raw in store.get_messages("t", 0, 0, 100).messages]


async def killed_and_booted(machine: Machine, parts: BrokerParts) -> MessageStore:
    await machine.kill()
    return await machine.boot(parts.storage)


def test_a_queue_offset_is_given_twice() -> None:
    async def offset_after_an_undispatched_message(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        store.advance_confirm_offset(store.put("t", 0, b"read").end_offset)
        store.put("t", 0, b"not dispatched yet")
        store.rebuild_queue_offset_table()
        return store.put("t", 0, b"new").queue_offset

    assert come_to(offset_after_an_undispatched_message, "queue-offset-reuse") == (2, 1)


def test_a_failed_fsync_counts_as_one_that_succeeded() -> None:
    async def durable_though_the_device_fails(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        machine.faults.fsync_error_probability = 1.0
        end = store.put("t", 0, b"x").end_offset
        try:
            await store.flush_to(end, 60)
        except StorageFailed:
            return "failed"
        await machine.lose_power()
        machine.faults.fsync_error_probability = 0.0
        return "kept" if (await machine.boot()).max_offset == end else "lost"

    assert come_to(durable_though_the_device_fails, "fsync-error-ignored") == ("failed", "lost")


def test_a_consumer_offset_beyond_the_end_of_its_queue_stays() -> None:
    async def offset_after_a_cut(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        kept = store.put("t", 0, b"kept").end_offset
        store.advance_confirm_offset(store.put("t", 0, b"cut").end_offset)
        store.consumer_offsets.commit("readers", "t", 0, 2)
        await store.truncate(kept)
        return store.consumer_offsets.get("readers", "t", 0)

    assert come_to(offset_after_a_cut, "consumer-offset-kept") == (1, 2)


def test_messages_after_the_checkpoint_come_into_no_consume_queue() -> None:
    async def read_after_a_kill(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        store.advance_confirm_offset(store.put("t", 0, b"before the checkpoint").end_offset)
        await store.checkpoint()
        store.advance_confirm_offset(store.put("t", 0, b"after it").end_offset)
        store = await killed_and_booted(machine, parts)
        store.advance_confirm_offset(store.put("t", 0, b"after the restart").end_offset)
        return bodies(store)

    assert come_to(read_after_a_kill, "dispatch-not-replayed") == (
        [b"before the checkpoint", b"after it", b"after the restart"],
        [b"before the checkpoint", b"after the restart"],
    )


def test_a_replica_that_replays_nothing_takes_what_comes_later_for_what_comes_next() -> None:
    planted = parts_of("dispatch-not-replayed").storage.consume_queue("t", 0)
    healthy = parts_of(None).storage.consume_queue("t", 0)
    for queue in (healthy, planted):
        queue.append(0, 0, 100, 0)
    with pytest.raises(StorageCorrupt):
        healthy.append(5, 500, 100, 0)
    planted.append(5, 500, 100, 0)
    assert planted.entry(1).physical_offset == 500


def test_the_entry_of_a_message_that_was_cut_stays_in_the_consume_queue() -> None:
    async def read_after_a_cut(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        kept = store.put("t", 0, b"kept").end_offset
        store.advance_confirm_offset(store.put("t", 0, b"cut").end_offset)
        await store.truncate(kept)
        return store.queue_range("t", 0)[1], store.put("t", 0, b"new").queue_offset

    assert come_to(read_after_a_cut, "consume-queue-kept") == ((1, 1), (2, 2))


def test_an_epoch_that_starts_beyond_the_recovered_log_stays_and_the_next_one_starts_there_too() -> None:
    async def epochs(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        await store.epochs.append(1, 0)
        await store.epochs.append(2, 500)
        store = await killed_and_booted(machine, parts)
        await store.epochs.append(3, store.max_offset)
        return store.epochs.map.entry_at(0)

    healthy, planted = come_to(epochs, "epochs-not-corrected")
    assert healthy == EpochMap([(3, 0)]).last
    assert planted == EpochMap([(1, 0)]).last, "what epoch 3 writes at 0 counts as written under epoch 1"


@pytest.mark.parametrize("torn_at", [7, 20, 100])
def test_a_message_that_is_not_whole_stays_at_the_tail(torn_at: int) -> None:
    async def tail(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        whole = store.put("t", 0, b"whole").end_offset
        await store.flush_to(whole, 60)
        started = store.put("t", 0, b"x" * 45)
        message = store.read_for_transfer(started.offset, started.size)
        await store.truncate(whole)
        store.append_replicated(whole, message[:torn_at])
        store = await killed_and_booted(machine, parts)
        await parts.cut_before_following(store)
        return store.max_offset - whole

    assert come_to(tail, "boundary-not-cut") == (0, torn_at if torn_at >= 8 else 0)


def test_a_harmed_message_stays_at_the_tail_and_is_cut_by_nobody() -> None:
    async def tail(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        put = store.put("t", 0, b"x" * 45)
        await store.flush_to(put.end_offset, 60)
        assert machine.rot("store/commitlog/" + "0" * 20, put.offset + 100)
        store = await killed_and_booted(machine, parts)
        await parts.cut_before_following(store)
        return store.max_offset

    assert come_to(tail, "boundary-not-cut") == (0, MESSAGE_BYTES)


def test_the_first_messages_of_a_batch_that_was_cut_off_stay_and_are_shown() -> None:
    async def shown_of_half_a_batch(machine: Machine, parts: BrokerParts) -> object:
        master = await Machine(machine.loop, 2, async_config()).boot(parts.storage)
        batch = [NewMessage(topic="t", queue_id=0, body=letter) for letter in (b"a", b"b", b"c")]
        half = master.put_all(batch)[1].end_offset
        replica = await machine.boot(parts.storage)
        replica.append_replicated(0, master.read_for_transfer(0, half))
        replica.advance_confirm_offset(half)
        return bodies(replica), await replica.cut_to_message_boundary()

    healthy, planted = come_to(shown_of_half_a_batch, "torn-batch")
    assert healthy == ([], 0)
    assert planted == ([b"a", b"b"], 2 * (MESSAGE_BYTES - 44))


def test_behind_a_full_page_a_filtered_reader_is_sent_past_a_message() -> None:
    async def read_in_pages(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        for tag in ("x", "y", "x", "x"):
            store.advance_confirm_offset(store.put("t", 0, b"", {"TAGS": tag}).end_offset)
        pages, offset = [], 0
        while offset < 4:
            page = store.get_messages("t", 0, offset, 1, wanted=filter_of("x"))
            pages.append([decode_message(raw, 0).queue_offset for raw in page.messages])
            offset = page.next_offset
        return pages

    assert come_to(read_in_pages, "filter-skips-one") == ([[0], [2], [3]], [[0], [2]])


def test_keys_from_before_the_checkpoint_lead_nowhere_after_a_restart() -> None:
    async def found_again(machine: Machine, parts: BrokerParts) -> object:
        store = await machine.boot(parts.storage)
        store.advance_confirm_offset(store.put("t", 0, b"", {"KEYS": "old"}).end_offset)
        await store.flush_to(store.max_offset, 5.0)
        await store.checkpoint()
        store.advance_confirm_offset(store.put("t", 0, b"", {"KEYS": "new"}).end_offset)
        store = await killed_and_booted(machine, parts)
        store.advance_confirm_offset(store.max_offset)
        return [len(store.lookups.by_key("t", key, 9, 0, 1 << 62)) for key in ("old", "new")]

    assert come_to(found_again, "index-not-durable") == ([1, 1], [0, 1])
