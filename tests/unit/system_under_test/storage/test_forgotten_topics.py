"""A topic that was deleted: its messages never come back, and those of a later topic of its name are never missing."""

from __future__ import annotations

import asyncio
import random

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_store import MessageStore
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

TOPICS = ("t", "u")


def bodies(store: MessageStore, topic: str) -> list[bytes]:
    least, end = store.queue_range(topic, 0)
    found = store.get_messages(topic, 0, least, 10_000, 1 << 30) if end > least else None
    return [] if found is None else [decode_message(message, 0).body for message in found.messages]


def confirm(store: MessageStore) -> None:
    store.advance_confirm_offset(store.max_offset)


def test_a_topic_that_is_made_again_begins_where_the_deleted_one_ended_also_after_a_loss_of_power() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        for letter in (b"a", b"b"):
            store.put("t", 0, letter)
        store.put("u", 0, b"other")
        confirm(store)
        store.consumer_offsets.commit("g", "t", 0, 2)
        store.consumer_offsets.commit("g", "u", 0, 1)
        await store.forget_topic("t")
        for _ in range(2):
            assert (bodies(store, "t"), bodies(store, "u")) == ([], [b"other"])
            assert store.consumer_offsets.get("g", "t", 0) is None
            assert store.consumer_offsets.get("g", "u", 0) == 1
            assert store.queue_end("t", 0) == 2
            await store.flush_to(store.max_offset, 10)
            await machine.lose_power()
            store = await machine.boot()
            confirm(store)
        assert store.put("t", 0, b"new").queue_offset == 2
        confirm(store)
        assert bodies(store, "t") == [b"new"]
        assert store.topics_with_messages() == {"t": 1, "u": 1}

    simulate(body)


def test_topics_deleted_at_once_are_all_forgotten() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        for topic in TOPICS:
            store.put(topic, 0, b"x")
        confirm(store)
        await asyncio.gather(*(store.forget_topic(topic) for topic in TOPICS))
        assert sorted(store.forgotten_topics) == sorted(TOPICS)
        assert [bodies(store, topic) for topic in TOPICS] == [[], []]

    simulate(body)


async def shows_what_is_new_now_and_after_a_restart(machine: Machine, store: MessageStore) -> None:
    for _ in range(2):
        confirm(store)
        assert bodies(store, "t") == [b"new"]
        await store.flush_to(store.max_offset, 10)
        await machine.lose_power()
        store = await machine.boot()


def test_what_is_written_where_a_forgotten_message_was_cut_is_shown() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        kept = store.put("t", 0, b"kept by the log").end_offset
        store.put("t", 0, b"cut")
        confirm(store)
        await store.forget_topic("t")
        await store.truncate(kept)
        assert store.put("t", 0, b"new").queue_offset == 1
        await shows_what_is_new_now_and_after_a_restart(machine, store)

    simulate(body)


def test_a_slave_that_becomes_master_before_it_has_what_it_forgot_shows_what_it_writes_there() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        store.put("t", 0, b"forgotten")
        confirm(store)
        await store.forget_topics({"t": 10**6})
        await store.forget_nothing_beyond_the_end()
        store.put("t", 0, b"new")
        await shows_what_is_new_now_and_after_a_restart(machine, store)

    simulate(body)


def test_a_slave_that_forgot_too_much_shows_it_once_its_master_says_less() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        await store.forget_topics({"t": 10**6})
        for letter in (b"a", b"b", b"c"):
            end = store.put("t", 0, letter).offset
        store.put("u", 0, b"other")
        confirm(store)
        assert bodies(store, "t") == []
        await store.forget_topics({"t": end})
        for _ in range(2):
            assert (bodies(store, "t"), bodies(store, "u")) == ([b"c"], [b"other"])
            await store.checkpoint()
            await store.flush_to(store.max_offset, 10)
            await machine.lose_power()
            store = await machine.boot()
            confirm(store)

    simulate(body)


@pytest.mark.parametrize("seed", range(40))
def test_readers_see_what_was_put_and_neither_cut_nor_forgotten(seed: int) -> None:
    """Against a list of all that was put; everything is durable before the power goes."""

    async def body(loop: VirtualTimeLoop) -> None:
        draw = random.Random(seed)
        machine = Machine(loop, seed, async_config(2_000))
        store = await machine.boot()
        put: list[tuple[int, int, str, bytes]] = []
        forgotten = dict.fromkeys(TOPICS, 0)
        for number in range(80):
            kind = draw.random()
            topic = draw.choice(TOPICS)
            if kind < 0.6:
                content = b"%d" % number * draw.randint(1, 20)
                result = store.put(topic, 0, content)
                put.append((result.offset, result.end_offset, topic, content))
            elif kind < 0.7:
                await store.forget_topic(topic)
                forgotten[topic] = store.max_offset
            elif kind < 0.8:
                end = draw.choice([store.max_offset, *(message[0] for message in put[-6:])])
                put = [message for message in put if message[1] <= end]
                forgotten = {name: min(before, end) for name, before in forgotten.items()}
                await store.truncate(end)
            elif kind < 0.85:
                before = draw.choice([0, store.max_offset, *(message[0] for message in put)])
                forgotten = {**dict.fromkeys(TOPICS, 0), topic: before}
                await store.forget_topics({topic: before})
            elif kind < 0.95:
                await store.checkpoint()
            else:
                await store.flush_to(store.max_offset, 10)
                await machine.lose_power()
                store = await machine.boot()
            confirm(store)
            for name in TOPICS:
                expected = [message[3] for message in put if message[2] == name and message[0] >= forgotten[name]]
                assert bodies(store, name) == expected, (number, name)
                assert store.queue_end(name, 0) >= store.queue_range(name, 0)[1]

    simulate(body)
