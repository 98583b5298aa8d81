"""A slave's copy of its master's tables, from a master that the test plays."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.slave_sync import SlaveSync
from system_under_test.rocketmq.broker.topics.tables import Tables
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.topic import TopicConfig, topics_as_json
from system_under_test.runtime.host import ConnectionClosed
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.timer_progress import encode_checkpoint
from system_under_test.storage.timer_wheel import TimerCheckpoint
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

TOPICS = RequestCode.GET_ALL_TOPIC_CONFIG
GROUPS = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
OFFSETS = RequestCode.GET_ALL_CONSUMER_OFFSET
DELAYS = RequestCode.GET_ALL_DELAY_OFFSET
TIMERS = RequestCode.GET_TIMER_CHECK_POINT
PERIOD_S = 10.0


class PlayedMaster:
    """Stands for the remoting client that reaches it; `held` lets it answer only once it is set."""

    def __init__(self) -> None:
        self.code = ResponseCode.SUCCESS
        self.counter = 1
        self.topics = {"T": TopicConfig.of("T", 4)}
        self.forgotten: dict[str, int] = {}
        self.offsets: dict[str, dict[str, int]] = {}
        self.progress: dict[str, object] = {}
        self.timers = TimerCheckpoint()
        self.asked: list[tuple[int, dict[str, str]]] = []
        self.bodies: list[int] = []
        self.held: asyncio.Event | None = None

    async def invoke(self, address: str, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
        self.asked.append((command.code, dict(command.ext_fields)))
        if self.held is not None:
            await self.held.wait()
        if self.code != ResponseCode.SUCCESS:
            return RemotingCommand.response(self.code, remark="no")
        version = str(self.counter)
        if command.ext_fields.get("knownVersion") == version:
            return RemotingCommand.response(ResponseCode.SUCCESS, {"version": version})
        self.bodies.append(command.code)
        if command.code == TIMERS:
            return RemotingCommand.response(ResponseCode.SUCCESS, {"version": version}, encode_checkpoint(self.timers))
        body = {
            "dataVersion": DataVersion(counter=self.counter).as_json(),
            "topicConfigTable": topics_as_json(self.topics),
            "forgottenTopics": self.forgotten,
            "subscriptionGroupTable": {},
            "offsetTable": self.progress if command.code == DELAYS else self.offsets,
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, {"version": version}, json.dumps(body).encode())

    def close(self) -> None:
        """The slave asks no more."""
        self.code = ResponseCode.SYSTEM_ERROR


class Slave:
    def __init__(self, machine: Machine, store: MessageStore, master: PlayedMaster) -> None:
        host = machine.same_host()
        config = BrokerConfig(name_servers=(), controllers=("c1:1",), slave_sync_s=PERIOD_S, retry_s=0.5)
        self.store = store
        self.tables = Tables(host, config)
        self.sync = SlaveSync(host, config, store, self.tables, "b1:10911", 7)
        played: Any = master
        self.sync._remoting = played
        self.sync.start()


async def slave_of(loop: VirtualTimeLoop, master: PlayedMaster) -> Slave:
    machine = Machine(loop, 1, async_config())
    return Slave(machine, await machine.boot(), master)


def test_a_table_travels_only_when_it_has_changed() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        slave = await slave_of(loop, master)
        await asyncio.sleep(3 * PERIOD_S)
        assert slave.tables.topics.entries == master.topics
        assert [code for code, _ in master.asked[:5]] == [TOPICS, GROUPS, OFFSETS, DELAYS, TIMERS]
        assert len(master.asked) >= 10
        assert all(fields["masterEpoch"] == "7" for _, fields in master.asked)
        assert master.bodies == [TOPICS, GROUPS, OFFSETS, DELAYS, TIMERS]
        master.counter, master.topics = 2, {}
        await asyncio.sleep(PERIOD_S)
        assert slave.tables.topics.entries == {}
        assert slave.tables.topics.version.counter == 2
        await slave.sync.stop()

    simulate(body)


def test_one_that_is_not_yet_master_is_asked_again_soon() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        master.code = ResponseCode.NOT_MASTER
        slave = await slave_of(loop, master)
        await asyncio.sleep(2)
        assert (len(master.asked), slave.tables.topics.entries) == (4, {})
        master.code = ResponseCode.SUCCESS
        await asyncio.sleep(1)
        assert slave.tables.topics.entries == master.topics
        await slave.sync.stop()

    simulate(body)


def test_offsets_beyond_the_own_queues_come_again_when_the_queues_have_grown() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        master.offsets = {"T@readers@work": {"0": 2}}
        slave = await slave_of(loop, master)
        store = slave.store
        store.put("T", 0, b"a")
        await asyncio.sleep(PERIOD_S / 2)
        assert store.consumer_offsets.get("readers@work", "T", 0) == 1
        store.put("T", 0, b"b")
        await asyncio.sleep(PERIOD_S)
        assert store.consumer_offsets.get("readers@work", "T", 0) == 2
        assert master.bodies.count(OFFSETS) == 2
        await slave.sync.stop()

    simulate(body)


def test_progress_of_delayed_messages_is_copied_as_far_as_the_own_queues_reach() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        master.progress = {"1": 1, "3": 2}
        slave = await slave_of(loop, master)
        store = slave.store
        for _ in range(3):
            store.put("SCHEDULE_TOPIC_XXXX", 0, b"a")
        store.put("SCHEDULE_TOPIC_XXXX", 2, b"c")
        await asyncio.sleep(PERIOD_S / 2)
        assert store.delay_progress.offset(1) == 0, "the log that has the copies is not confirmed"
        store.advance_confirm_offset(store.max_offset)
        await asyncio.sleep(2 * PERIOD_S)
        assert [store.delay_progress.offset(level) for level in (1, 2, 3)] == [1, 0, 1]
        master.progress, master.counter = {"1": "two"}, 2
        await asyncio.sleep(PERIOD_S)
        assert store.delay_progress.offset(1) == 1, "nonsense is not taken"
        await slave.sync.stop()

    simulate(body)


def test_what_a_cut_has_lowered_is_copied_again_although_the_master_has_not_changed() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        master.forgotten = {"old": 10_000}
        slave = await slave_of(loop, master)
        slave.store.put("T", 0, b"a")
        await asyncio.sleep(1)
        assert slave.store.forgotten_topics == {"old": 10_000}
        await slave.store.truncate(0)
        assert slave.store.forgotten_topics == {"old": 0}
        await asyncio.sleep(PERIOD_S)
        assert slave.store.forgotten_topics == {"old": 10_000}
        await slave.sync.stop()

    simulate(body)


def test_what_a_deposed_master_changed_late_is_copied_over() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        master.offsets = {"T@g": {"0": 1}}
        slave = await slave_of(loop, master)
        slave.store.put("T", 0, b"a")
        await asyncio.sleep(1)
        await slave.tables.topics.remove("T", 3)
        await slave.store.forget_group("g")
        await asyncio.sleep(PERIOD_S)
        assert slave.tables.topics.entries == master.topics
        assert slave.store.consumer_offsets.get("g", "T", 0) == 1
        await slave.sync.stop()

    simulate(body)


def test_nothing_is_taken_after_the_end_also_if_the_answer_was_on_its_way() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        master.held = asyncio.Event()
        slave = await slave_of(loop, master)
        await asyncio.sleep(1)
        await slave.sync.stop()
        master.held.set()
        await asyncio.sleep(3 * PERIOD_S)
        assert len(master.asked) == 1
        assert slave.tables.topics.entries == {}

    simulate(body)


def test_a_master_that_is_gone_or_speaks_nonsense_is_asked_again() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = PlayedMaster()
        healthy, turns = master.invoke, 0

        async def broken(address: str, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
            nonlocal turns
            turns += 1
            if turns == 1:
                raise ConnectionClosed
            nonsense = (b"", b"[]", b"{}", b'{"offsetTable":{"T@g":{"x":1}},"forgottenTopics":[1]}')
            if turns <= 1 + len(nonsense):
                return RemotingCommand.response(ResponseCode.SUCCESS, {"version": "0"}, nonsense[turns - 2])
            if turns == 2 + len(nonsense):
                return RemotingCommand.response(ResponseCode.SUCCESS)
            return await healthy(address, command, timeout_s)

        master.invoke = broken  # type: ignore[method-assign]
        slave = await slave_of(loop, master)
        await asyncio.sleep(8 * PERIOD_S)
        assert slave.tables.topics.entries == master.topics
        await slave.sync.stop()

    simulate(body)
