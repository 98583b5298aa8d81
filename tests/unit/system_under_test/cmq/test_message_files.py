"""What a queue's files have after restarts, losses of power, a full disk and rot."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.cmq import snapshot
from system_under_test.cmq.entry import Ack, Command, Create, Produce, encode
from system_under_test.cmq.message_files import MAX_OPEN, MessageFiles
from system_under_test.cmq.state_machine import NO_QUEUES, CopiedState, QueueGroupState
from system_under_test.runtime.host import DiskFull
from system_under_test.runtime.real_disk import RealDisk
from system_under_test.storage.errors import StorageCorrupt, StorageFailed
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.cmq.message_machine import (
    FILE_BYTES,
    MAX_QUEUES,
    PLACE,
    MessageMachine,
    QueueProcess,
)


def bodies(count: int, first: int = 0) -> tuple[bytes, ...]:
    return tuple(b"%04d" % number for number in range(first, first + count))


def contents(process: QueueProcess) -> dict[str, bytes]:
    found = {}
    for path in process.disk.list(PLACE):
        file = process.disk.open(path)
        found[path.removeprefix(f"{PLACE}/")] = file.read_at(0, file.size)
    return found


async def published(process: QueueProcess) -> CopiedState:
    """A state that a snapshot may name."""
    copied = process.state.copy()
    await process.files.sync(snapshot.files(copied))
    return copied


def with_messages(loop: VirtualTimeLoop, count: int) -> tuple[MessageMachine, QueueProcess]:
    """A machine, and its process, whose queue `q` has so many messages."""
    machine = MessageMachine(loop)
    process = machine.boot()
    process.apply(Create("q"))
    process.apply(Produce("q", bodies(count)))
    return machine, process


def test_a_message_is_read_as_it_was_produced() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        process = MessageMachine(loop).boot()
        for command in (Create("q"), Create("p"), Produce("q", bodies(12)), Produce("p", (b"", bytes(300)))):
            process.apply(command)
        assert process.messages() == {"q": dict(enumerate(bodies(12))), "p": {0: b"", 1: bytes(300)}}

    simulate(body)


def test_after_a_restart_the_files_are_as_long_as_the_snapshot_says() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine, process = with_messages(loop, 3)
        copied, before = await published(process), contents(process)
        process.apply(Produce("q", bodies(9, 3)))
        assert len(contents(process)) == 3
        again = machine.boot(copied)
        assert contents(again) == before
        assert again.messages() == {"q": dict(enumerate(bodies(3)))}
        again.apply(Produce("q", bodies(9, 3)))
        assert again.messages() == {"q": dict(enumerate(bodies(12)))}

    simulate(body)


@pytest.mark.parametrize("longest", [200_000, 3 << 20])
def test_a_file_longer_than_what_is_read_at_once_is_back_after_a_restart(longest: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = MessageMachine(loop)
        state, files = QueueGroupState(64 << 20, 1), MessageFiles(machine.disk())
        files.restore(PLACE, NO_QUEUES)
        produced = tuple(bytes((number,)) * (longest * number // 15) for number in range(15, -1, -1))
        (write,) = (*state.apply(encode(Create("q"))).writes, *state.apply(encode(Produce("q", produced))).writes)
        files.write(write)
        again = MessageFiles(machine.disk())
        again.restore(PLACE, state.copy())
        assert tuple(again.read("q", number) for number in range(16)) == produced

    simulate(body)


def test_without_a_snapshot_nothing_of_the_files_is_left() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine, _ = with_messages(loop, 12)
        assert contents(machine.boot(NO_QUEUES)) == {}

    simulate(body)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_snapshot_names_survives_a_loss_of_power(seed: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = MessageMachine(loop, seed)
        process = machine.boot()
        process.apply(Create("q"))
        process.apply(Produce("q", bodies(8)))
        copied, expected = await published(process), process.messages()
        process.apply(Produce("q", bodies(8, 8)))
        machine.lose_power()
        assert machine.boot(copied).messages() == expected

    simulate(body)


def test_a_snapshot_that_comes_before_its_data_is_found_to_lack_them() -> None:
    class Unsynced(MessageFiles):
        async def sync(self, files: object) -> None:
            """Nothing is made durable."""

    async def body(loop: VirtualTimeLoop) -> None:
        machine = MessageMachine(loop)
        process = machine.boot(files=Unsynced)
        process.apply(Create("q"))
        for first in range(0, 48, 16):
            process.apply(Produce("q", bodies(16, first)))
        copied = await published(process)
        machine.lose_power()
        with pytest.raises(StorageCorrupt, match="remove this node from its group, and add it anew with an empty disk"):
            machine.boot(copied)

    simulate(body)


def test_only_files_with_bytes_that_are_not_durable_are_synced() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        process = MessageMachine(loop).boot()
        process.apply(Create("q"))
        process.apply(Produce("q", bodies(7)))
        copied = await published(process)
        process.apply(Produce("q", bodies(4, 7)))
        before = loop.now_ns
        await process.files.sync(snapshot.files(copied))
        assert loop.now_ns == before
        await process.files.sync(snapshot.files(process.state.copy()))
        assert loop.now_ns > before

    simulate(body)


def test_a_sync_ends_where_a_snapshot_of_the_leader_takes_the_place_of_its_files() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        process = MessageMachine(loop).boot()
        process.apply(Create("q"))
        process.apply(Produce("q", bodies(12)))
        sync = asyncio.ensure_future(process.files.sync(snapshot.files(process.state.copy())))
        await asyncio.sleep(0)
        process.files.restore("files-1", NO_QUEUES)
        await sync

    simulate(body)


def test_a_failed_sync_is_final() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine, process = with_messages(loop, 1)
        machine.store.faults.fsync_error_probability = 1.0
        with pytest.raises(StorageFailed, match=r"files-0/q\.0{20}"):
            await published(process)

    simulate(body)


def test_a_write_that_finds_no_room_writes_nothing_and_may_be_tried_again() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = MessageMachine(loop)
        process = machine.boot()
        process.apply(Create("q"))
        process.apply(Produce("q", (b"",)))
        before = contents(process)
        first, *others = process.state.apply(encode(Produce("q", (b"x",) * 16))).writes
        machine.room(len(first.data) - 1)
        with pytest.raises(DiskFull):
            process.files.write(first)
        assert contents(process) == before
        assert process.files.read("q", 0) == b""
        machine.room(None)
        for write in (first, *others):
            process.files.write(write)
        assert process.messages() == {"q": {0: b"", **dict.fromkeys(range(1, 17), b"x")}}

    simulate(body)


def test_a_file_that_finds_no_room_for_its_first_message_may_be_tried_again() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = MessageMachine(loop)
        process = machine.boot()
        process.apply(Create("q"))
        (write,) = process.state.apply(encode(Produce("q", (b"x",)))).writes
        machine.room(3)
        with pytest.raises(DiskFull):
            process.files.write(write)
        machine.room(None)
        process.files.write(write)
        assert process.messages() == {"q": {0: b"x"}}

    simulate(body)


@pytest.mark.parametrize("offset", [0, 4, 8, 15, 16, 19, 20, 79, 80, 99])
def test_rot_within_what_a_snapshot_names_is_found_at_a_restart(offset: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine, process = with_messages(loop, 7)
        copied = await published(process)
        machine.store.rot("files-0/q.00000000000000000000", offset)
        with pytest.raises(StorageCorrupt, match=r"files-0/q\.00000000000000000000 is harmed at message \d or before"):
            machine.boot(copied)

    simulate(body)


def test_a_file_that_is_gone_or_too_short_is_found_at_a_restart() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine, process = with_messages(loop, 7)
        copied = await published(process)
        process.disk.open("files-0/q.00000000000000000005").truncate(39)
        with pytest.raises(StorageCorrupt, match=r"q\.00000000000000000005 is harmed at message 6"):
            machine.boot(copied)
        machine.disk().remove("files-0/q.00000000000000000005")
        with pytest.raises(StorageCorrupt, match=r"q\.00000000000000000005 is gone: remove this node"):
            machine.boot(copied)

    simulate(body)


def test_rot_is_found_where_a_message_is_read() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine, process = with_messages(loop, 3)
        machine.store.rot("files-0/q.00000000000000000000", 20 + 17)
        assert process.files.read("q", 0) == b"0000"
        with pytest.raises(StorageCorrupt, match="at message 1"):
            process.files.read("q", 1)
        machine.store.faults.read_error_probability = 1.0
        with pytest.raises(StorageFailed, match="read failed"):
            process.files.read("q", 0)

    simulate(body)


def test_files_go_once_no_snapshot_names_them() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        process = MessageMachine(loop).boot()
        process.apply(Create("q"))
        process.apply(Produce("q", bodies(12)))
        older = await published(process)
        process.apply(Ack("q", tuple(range(10))))
        assert process.files.older_than(older) == ()
        newer = await published(process)
        names = process.files.older_than(newer)
        assert names == ("q.00000000000000000000", "q.00000000000000000005")
        process.files.remove(names)
        assert list(contents(process)) == ["q.00000000000000000010"]
        assert process.files.older_than(newer) == ()
        assert process.messages() == {"q": {10: b"0010", 11: b"0011"}}

    simulate(body)


def test_no_more_files_are_open_than_allowed_however_many_there_are() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        process = MessageMachine(loop).boot()
        process.apply(Create("q"))
        for number in range(3 * MAX_OPEN):
            process.apply(Produce("q", (b"%090d" % number,)))
        await published(process)
        assert len(process.state.queues["q"].files) == 3 * MAX_OPEN
        assert len(process.messages()["q"]) == 3 * MAX_OPEN
        assert len(process.files._open) == MAX_OPEN

    simulate(body)


def test_files_that_stay_at_a_restart_are_in_the_queue_again() -> None:
    """What a planted bug does is done by overriding one method."""

    class Kept(MessageFiles):
        def reset(self, copied: CopiedState) -> CopiedState:
            return replace(copied, queues=(*copied.queues, *left.queues))

    async def body(loop: VirtualTimeLoop) -> None:
        nonlocal left
        machine, process = with_messages(loop, 2)
        left = process.state.copy()
        again = machine.boot(files=Kept)
        again.apply(Create("q"))
        again.apply(Produce("q", bodies(2)))
        assert again.messages() == {"q": {0: b"0000", 1: b"0001", 2: b"0000", 3: b"0001"}}

    left = NO_QUEUES
    simulate(body)


def harm(process: QueueProcess, copied: CopiedState, draw: random.Random) -> None:
    """Something happens to a file, or to all that is behind the snapshot's lengths."""
    sizes = {each.name: each.size for each in snapshot.files(copied)}
    path = draw.choice(process.disk.list(PLACE))
    file = process.disk.open(path)
    kind = draw.random()
    if kind < 0.5:
        start = draw.randrange(file.size + 1)
        file.write_at(start, draw.choice((b"\0", b"\xff", draw.randbytes(1), draw.randbytes(5))))
    elif kind < 0.6:
        file.truncate(draw.randrange(file.size + 20))
    elif kind < 0.7:
        process.disk.remove(path)
    elif kind < 0.8:
        process.disk.open(f"{PLACE}/{draw.choice(('stranger', 'q.00000000000000000001', 'q.x.1'))}").append(b"x")
    else:
        at = sizes.get(path.removeprefix(f"{PLACE}/"), 0)
        file.truncate(at)
        file.append(draw.randbytes(draw.randrange(80)))


def test_harmed_files_are_found_or_harmed_where_nothing_is_said_of_them() -> None:
    async def body(loop: VirtualTimeLoop) -> bool:
        machine, process = with_messages(loop, 8)
        copied, expected = await published(process), process.messages()
        process.apply(Produce("q", bodies(8, 8)))
        for _ in range(draw.randrange(1, 3)):
            harm(process, copied, draw)
        try:
            again = machine.boot(copied)
        except StorageCorrupt:
            return True
        assert again.messages() == expected
        assert list(contents(again)) == [each.name for each in snapshot.files(copied)]
        return False

    draw = random.Random(11)
    found = sum(simulate(body) for _ in range(1500))
    assert 300 < found < 1200


def test_on_a_real_disk_files_are_synced_and_read_while_others_are_in_use(tmp_path: Path) -> None:
    async def body() -> None:
        before = len(os.listdir("/proc/self/fd"))
        files = MessageFiles(RealDisk(tmp_path))
        state = QueueGroupState(FILE_BYTES, MAX_QUEUES, files.restore(PLACE, NO_QUEUES))

        def apply(command: Command) -> None:
            for write in state.apply(encode(command)).writes:
                files.write(write)

        apply(Create("q"))
        for first in range(0, 480, 16):
            apply(Produce("q", bodies(16, first)))
        assert len(state.queues["q"].files) > 2 * MAX_OPEN
        copied = state.copy()
        sync = asyncio.ensure_future(files.sync(snapshot.files(copied)))
        while not sync.done():
            await asyncio.sleep(0)
            apply(Produce("q", bodies(1)))
            assert files.read("q", 7) == b"0007"
        await sync
        again = MessageFiles(RealDisk(tmp_path))
        again.restore(PLACE, copied)
        assert [again.read("q", number) for number in range(480)] == [*bodies(480)]
        assert len(os.listdir("/proc/self/fd")) == before + 2 * MAX_OPEN
        files.close()
        again.close()
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(body())
