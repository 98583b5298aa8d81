"""A broker's table: durable before it is seen, versioned, and copied as a whole."""

from __future__ import annotations

import asyncio

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.rocketmq.broker.topics.versioned_table import VersionedTable
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.topic import TopicConfig, topics_as_json, topics_from_json
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.consumer_offsets import ConsumerOffsets
from system_under_test.storage.errors import StorageCorrupt
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

T, U, V = (TopicConfig.of(name, 1) for name in "TUV")


def table_on(machine: Machine, *initial: TopicConfig) -> VersionedTable[TopicConfig]:
    """As a new process of this machine has it."""
    table = VersionedTable[TopicConfig](
        machine.host(),
        "config/topics.json",
        label="topicConfigTable",
        write=topics_as_json,
        read=topics_from_json,
        initial={topic.name: topic for topic in initial},
    )
    table.load()
    return table


def test_a_change_outlives_a_loss_of_power_and_from_then_on_the_initial_entries_do_not_count() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        table = table_on(machine, T)
        assert (dict(table.entries), table.version) == ({"T": T}, DataVersion())
        await table.put({"U": U}, 3)
        await table.remove("T", 4)
        await machine.lose_power()
        again = table_on(machine, T, V)
        assert dict(again.entries) == {"U": U}
        assert (again.version.state_version, again.version.counter) == (4, 2)

    simulate(body)


def test_changes_at_once_are_all_kept() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        table = table_on(Machine(loop, 1, async_config()), T)
        await asyncio.gather(table.put({"U": U}, 1), table.put({"V": V}, 1), table.remove("T", 1))
        assert list(table.entries) == ["U", "V"]
        assert table.version.counter == 3

    simulate(body)


def test_what_is_there_already_is_no_change_and_what_is_assumed_is_none() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        table = table_on(machine, T)
        await table.put({"T": T}, 9)
        table.assume({"U": U, "T": TopicConfig.of("T", 9)})
        assert (dict(table.entries), table.version) == ({"T": T, "U": U}, DataVersion())
        assert list(machine.paths()) == []

    simulate(body)


def test_what_does_not_fit_the_disk_is_not_seen() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        table = table_on(machine, T)
        machine.faults.capacity_bytes = 0
        with pytest.raises(DiskFull):
            await table.put({"U": U}, 1)
        assert (dict(table.entries), table.version) == ({"T": T}, DataVersion())

    simulate(body)


def test_a_copy_has_the_version_of_what_it_was_copied_from() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master, slave = (table_on(Machine(loop, seed, async_config()), T) for seed in (1, 2))
        await master.put({"U": U}, 7)
        await slave.take(master.encode(beside={"anything": 1}))
        assert (slave.entries, slave.version) == (master.entries, master.version)
        for nonsense in (b"", b"{}", b'{"topicConfigTable":{},"dataVersion":{"counter":1.5}}', b"[" * 1000):
            with pytest.raises(ValueError):  # noqa: PT011 - the reason differs with what is wrong
                await slave.take(nonsense)
        assert slave.version == master.version

    simulate(body)


def test_a_file_that_is_no_table_is_not_believed() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        table = table_on(machine, T)
        await table.put({"U": U}, 1)
        machine.rot("config/topics.json", 30)
        with pytest.raises(StorageCorrupt):
            table_on(machine, T)

    simulate(body)


def test_offsets_are_copied_as_far_as_the_own_queues_reach() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        offsets = ConsumerOffsets(machine.host().disk, "offsets")
        offsets.commit("gone", "T", 0, 1)
        version = offsets.version
        theirs = {("g", "T", 0): 9, ("g", "T", 1): 3}
        assert not offsets.take(theirs, lambda topic, queue_id: 5)
        assert dict(offsets.items()) == {("g", "T", 0): 5, ("g", "T", 1): 3}
        assert offsets.version > version
        assert offsets.take(theirs, lambda topic, queue_id: 9)
        version = offsets.version
        assert offsets.take(theirs, lambda topic, queue_id: 9)
        assert offsets.version == version

    simulate(body)
