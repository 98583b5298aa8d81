"""A store above a DLedger log: where messages stand, what is shown, and what a cut below leaves of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.dledger.driver import DriverTimes, GroupMember
from system_under_test.dledger.entry import HEAD_BYTES, Entry
from system_under_test.dledger.entry_files import FileSizes
from system_under_test.dledger.state import GroupConfig
from system_under_test.dledger.store import FileStore
from system_under_test.dledger.vote_file import VoteFile
from system_under_test.rocketmq.broker.dledger.replicated_log import ReplicatedLog
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import MessageTooLarge
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.new_message import NewMessage
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

FILE_BYTES = 1_000
ALONE = GroupConfig(node="b1", members=("b1",))
OF_THREE = GroupConfig(node="b1", members=("b1", "b2", "b3"))


class Broker:
    """A process with a store above a member's log."""

    def __init__(self, machine: Machine, config: GroupConfig) -> None:
        self.machine = machine
        host = machine.host()
        sizes = FileSizes(data_bytes=FILE_BYTES, index_bytes=320)
        self.entries = FileStore(host.disk, "d", sizes)
        self.member = GroupMember(
            host,
            "group",
            config,
            DriverTimes(),
            store=self.entries,
            votes=VoteFile(host.disk, "d/vote"),
            peers=None,  # type: ignore[arg-type]
        )
        self.log = ReplicatedLog(self.entries, self.member)
        self.store = MessageStore(host, async_config(FILE_BYTES), log=self.log)

    def show_committed(self) -> None:
        self.store.advance_confirm_offset(self.log.offset_behind(self.member.committed))

    def readable(self) -> list[bytes]:
        found = self.store.get_messages("t", 0, 0, 100).messages
        return [decode_message(message, 0).body for message in found]

    async def leads(self) -> None:
        await self.store.open()
        await self.member.start()
        while not self.log.is_all_committed or not self.member.is_leader:
            await self.machine.clock.sleep(0.1)


def message(body: bytes) -> NewMessage:
    return NewMessage(topic="t", queue_id=0, body=body, properties={})


def on_machine(body: Callable[[Machine], Coroutine[Any, Any, None]]) -> None:
    async def with_machine(loop: VirtualTimeLoop) -> None:
        await body(Machine(loop, 1, async_config()))

    simulate(with_machine)


def test_messages_stand_behind_the_heads_of_their_entries_and_the_leaders_own_entry_is_none() -> None:
    async def body(machine: Machine) -> None:
        broker = Broker(machine, ALONE)
        await broker.leads()
        put, *batch = broker.store.put_all((message(b"a"),)) + broker.store.put_all((message(b"b"), message(b"c")))
        broker.show_committed()
        entries = [broker.entries.entry(index) for index in range(3)]
        assert [entry is not None and entry.body != b"" for entry in entries] == [False, True, True]
        assert put.offset == entries[1].position + HEAD_BYTES
        assert batch[0].offset == entries[2].position + HEAD_BYTES
        assert batch[1].offset == batch[0].end_offset
        assert broker.readable() == [b"a", b"b", b"c"]
        assert broker.store.lookups.at(batch[1].offset) is not None

    on_machine(body)


def test_messages_go_on_in_the_next_file_and_a_start_shows_all_of_them_anew() -> None:
    async def body(machine: Machine) -> None:
        broker = Broker(machine, ALONE)
        await broker.leads()
        bodies = [b"%03d" % number for number in range(20)]
        for each in bodies:
            broker.store.put("t", 0, each)
        broker.show_committed()
        assert len(broker.log.segment_starts()) > 2
        await broker.member.stop()
        await broker.store.stop()
        again = Broker(machine, ALONE)
        await again.store.open()
        again.show_committed()
        assert again.readable() == bodies
        assert again.store.queue_range("t", 0) == (0, 20)

    on_machine(body)


def test_what_is_written_and_not_committed_is_not_shown_but_counts_for_the_next_offset() -> None:
    async def body(machine: Machine) -> None:
        broker = Broker(machine, ALONE)
        await broker.leads()
        broker.store.put("t", 0, b"a")
        assert broker.readable() == []
        broker.store.rebuild_queue_offset_table()
        assert broker.store.queue_end("t", 0) == 1
        assert broker.store.has_undispatched

    on_machine(body)


def test_a_cut_below_takes_what_was_shown_and_the_consumers_offsets_with_it() -> None:
    async def body(machine: Machine) -> None:
        broker = Broker(machine, ALONE)
        await broker.leads()
        for each in (b"a", b"b", b"c"):
            broker.store.put("t", 0, each)
        broker.show_committed()
        broker.store.consumer_offsets.commit("g", "t", 0, 3)
        kept = broker.entries.entry(1)
        assert kept is not None and broker.entries.end_with(kept)
        broker.store.log_was_cut(broker.log.offset_behind(1))
        assert broker.readable() == [b"a"]
        assert broker.store.queue_end("t", 0) == 1
        assert broker.store.consumer_offsets.get("g", "t", 0) == 1

    on_machine(body)


def test_a_log_that_begins_anew_shows_nothing_of_the_one_before() -> None:
    async def body(machine: Machine) -> None:
        broker = Broker(machine, ALONE)
        await broker.leads()
        for each in (b"a", b"b"):
            broker.store.put("t", 0, each)
        broker.show_committed()
        other = Entry(0, 7, 0, broker.entries.entry(1).body)  # type: ignore[union-attr]
        assert broker.entries.end_with(other)
        broker.store.log_was_cut(broker.log.offset_behind(-1))
        assert broker.readable() == []
        assert broker.store.queue_end("t", 0) == 1

    on_machine(body)


def test_what_fits_no_file_and_what_has_no_room_is_refused_and_nothing_was_written() -> None:
    async def body(machine: Machine) -> None:
        broker = Broker(machine, ALONE)
        await broker.leads()
        end = broker.log.max_offset
        with pytest.raises(MessageTooLarge):
            broker.store.put("t", 0, bytes(FILE_BYTES - HEAD_BYTES))
        machine.faults.capacity_bytes = machine.used_bytes
        with pytest.raises(DiskFull):
            broker.store.put("t", 0, b"a")
        assert broker.log.max_offset == end
        machine.faults.capacity_bytes = None
        assert broker.store.put("t", 0, b"a").queue_offset == 0

    on_machine(body)


def test_each_start_counts_as_another_beginning_of_the_log() -> None:
    async def body(machine: Machine) -> None:
        log = Broker(machine, OF_THREE).log
        log.load(None)
        assert log.beginnings == 0
        log.load((4, 0))
        assert log.beginnings == 5

    on_machine(body)
