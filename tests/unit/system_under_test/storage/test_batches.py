"""A batch is in the log as a whole or not at all: after any cut, any crash, and at any point of its replication."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.errors import MessageTooLarge
from system_under_test.storage.message import CONTINUES, MESSAGES, decode_message
from system_under_test.storage.message_store import MessageStore, StorageParts
from system_under_test.storage.new_message import NewMessage
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config, sync_config


def letters(text: str, sys_flag: int = 0) -> list[NewMessage]:
    return [
        NewMessage(topic="t", queue_id=0, body=letter.encode(), properties={"TAGS": letter}, sys_flag=sys_flag)
        for letter in text
    ]


def put_all(store: MessageStore) -> dict[int, str]:
    """A batch, a message alone, a batch; what readers see once the log reaches so far."""
    shown = {0: ""}
    for text in ("abc", "d", "ef"):
        if len(text) == 1:
            end = store.put("t", 0, text.encode()).end_offset
        else:
            end = store.put_all(letters(text))[-1].end_offset
        shown[end] = shown[max(shown)] + text
    return shown


def seen(store: MessageStore) -> str:
    messages = store.get_messages("t", 0, 0, 100).messages
    decoded = [decode_message(raw, 0) for raw in messages]
    assert [message.queue_offset for message in decoded] == list(range(len(decoded)))
    return "".join(message.body.decode() for message in decoded)


def whole(messages: dict[int, str], length: int) -> int:
    return max(end for end in messages if end <= length)


def test_a_batch_has_consecutive_offsets_and_says_where_it_goes_on() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, sync_config()).boot()
        store.put("t", 0, b"first")
        results = store.put_all(letters("abc", sys_flag=1))
        assert [result.queue_offset for result in results] == [1, 2, 3]
        messages = [decode_message(store.read_for_transfer(r.offset, r.size), 0) for r in results]
        assert [message.body for message in messages] == [b"a", b"b", b"c"]
        assert [message.sys_flag for message in messages] == [1 | CONTINUES, 1 | CONTINUES, 1]
        assert store.put_all(letters("d", sys_flag=CONTINUES))[0].queue_offset == 4
        store.advance_confirm_offset(store.max_offset)
        assert store.queue_range("t", 0) == (0, 5), "a message alone says of itself that it goes on"
        await store.stop()

    simulate(body)


def test_a_batch_stands_in_one_segment() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        store = await Machine(loop, 1, sync_config(1000)).boot()
        store.put("t", 0, b"x" * 600)
        results = store.put_all(letters("abc"))
        assert results[0].offset == 1000
        with pytest.raises(MessageTooLarge):
            store.put_all(letters("abcdefghij"))
        assert store.put("t", 0, b"").queue_offset == 4
        await store.stop()

    simulate(body)


def test_whatever_is_cut_off_takes_whole_batches_with_it() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        for cut in range(1, 1000):
            store = await Machine(loop, 1, sync_config(1000)).boot()
            shown = put_all(store)
            if cut > store.max_offset:
                break
            store.advance_confirm_offset(store.max_offset)
            await store.truncate(cut)
            assert seen(store) == shown[whole(shown, cut)]
            assert await store.cut_to_message_boundary() == whole(shown, cut)
            assert store.put("t", 0, b"").queue_offset == len(seen(store))
            await store.stop()

    simulate(body)


def test_a_replica_shows_and_keeps_whole_batches_wherever_its_bytes_end() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, 1, sync_config(1000)).boot()
        shown = put_all(master)
        data = master.read_for_transfer(0, master.max_offset)
        for length in range(1, len(data) + 1):
            machine = Machine(loop, 2, async_config(1000))
            replica = await machine.boot()
            replica.append_replicated(0, data[:length])
            replica.advance_confirm_offset(length)
            assert seen(replica) == shown[whole(shown, length)]
            assert replica.last_message_boundary() == whole(shown, length)
            await machine.kill()
            again = await machine.boot()
            assert again.max_offset == whole(shown, length)
            again.advance_confirm_offset(again.max_offset)
            assert seen(again) == shown[again.max_offset]
            await machine.kill()

    simulate(body)


def losses_of_power(parts: StorageParts | None, seeds: int) -> set[int]:
    """How many messages of a batch of four, torn by a loss of power, were there afterwards."""

    async def body(loop: VirtualTimeLoop) -> set[int]:
        kept = set()
        for seed in range(seeds):
            machine = Machine(loop, seed, async_config(100_000))
            store = await machine.boot(parts)
            await store.flush_to(store.put("t", 1, b"so that the file is there").end_offset, 5.0)
            big = [NewMessage(topic="t", queue_id=0, body=b"x" * 4000) for _ in range(4)]
            first, *_ = store.put_all(big)
            await machine.lose_power()
            store = await machine.boot(parts)
            kept.add((store.max_offset - first.offset) // first.size)
            await machine.kill()
        return kept

    return simulate(body)


def test_a_loss_of_power_takes_all_of_a_batch_or_nothing() -> None:
    assert losses_of_power(None, 100) == {0, 4}


def test_recovery_that_keeps_torn_batches_is_noticed() -> None:
    assert losses_of_power(
        StorageParts(record_format=replace(MESSAGES, goes_on=lambda buffer, position: False)), 100
    ) > {0, 4}
