"""Whatever is produced and acknowledged, and wherever a node dies: once it has applied the log again, it has all
messages that are not acknowledged, and no others.

A dictionary of messages and a set of acknowledged numbers say what a queue has. The node makes snapshots while entries
go on; it is killed, or loses power, at any moment, within syncs too; its disk is full at times; and it is given another
node's snapshot with its files. It is like a node that never died: the same answers, and the same digest.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.cmq import snapshot
from system_under_test.cmq.entry import MAX_MESSAGES, Ack, Command, Create, Produce, encode
from system_under_test.cmq.message_files import MessageFiles, pieces
from system_under_test.cmq.state_machine import (
    NO_QUEUES,
    Acknowledged,
    CopiedQueue,
    CopiedState,
    Created,
    FileState,
    Produced,
    QueueGroupState,
    Refusal,
    Result,
    Write,
    file_name,
)
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import StorageCorrupt
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.cmq.message_machine import (
    FILE_BYTES,
    MAX_QUEUES,
    MessageMachine,
)

NAMES = ("a", "b", "c", "d", "e")


@dataclass
class Reference:
    """What the queues are, by definition."""

    bodies: dict[str, list[bytes]] = field(default_factory=dict)
    acknowledged: dict[str, set[int]] = field(default_factory=dict)

    def apply(self, command: Command) -> Result:
        name = command.queue
        if isinstance(command, Create):
            if name not in self.bodies and len(self.bodies) == MAX_QUEUES:
                return Refusal.TOO_MANY_QUEUES
            is_new = name not in self.bodies
            self.bodies.setdefault(name, [])
            self.acknowledged.setdefault(name, set())
            return Created(is_new=is_new)
        if name not in self.bodies:
            return Refusal.UNKNOWN_QUEUE
        if isinstance(command, Produce):
            self.bodies[name] += command.bodies
            return Produced(len(self.bodies[name]) - len(command.bodies), len(command.bodies))
        if any(number >= len(self.bodies[name]) for number in command.numbers):
            return Refusal.NEVER_PRODUCED
        newly = []
        for number in command.numbers:
            newly.append(number not in self.acknowledged[name])
            self.acknowledged[name].add(number)
        return Acknowledged(tuple(newly))

    def messages(self) -> dict[str, dict[int, bytes]]:
        return {
            name: {number: body for number, body in enumerate(bodies) if number not in self.acknowledged[name]}
            for name, bodies in self.bodies.items()
        }


class Play:
    def __init__(self, loop: VirtualTimeLoop, seed: int, files: type[MessageFiles] = MessageFiles) -> None:
        self.loop = loop
        self.draw = random.Random(seed)
        self.machine = MessageMachine(loop, seed)
        self.files = files
        self.reference = Reference()
        self.undying = QueueGroupState(FILE_BYTES, MAX_QUEUES)
        self.log: list[tuple[bytes, Result]] = []
        self.published = 0, snapshot.encode(NO_QUEUES)
        """How much of the log the newest snapshot stands for, and its record."""
        self.place = 0
        self.unwritten: list[Write] = []
        """They found no room."""
        self.snapshots = self.restarts = self.removed = self.full = 0
        self.process = self.machine.boot(files=files)

    def command(self) -> Command:
        draw, name = self.draw, self.draw.choice(NAMES)
        bodies = self.reference.bodies.get(name, [])
        kind = draw.random()
        if kind < 0.06:
            return Create(name)
        if kind < 0.5 or not bodies:
            count = draw.choice((1, 1, 1, 2, 5, MAX_MESSAGES))
            longest = draw.choice((0, 4, 20, FILE_BYTES - 16))
            return Produce(name, tuple(draw.randbytes(draw.randint(0, longest)) for _ in range(count)))
        unset = sorted(set(range(len(bodies))) - self.reference.acknowledged[name])
        if unset and draw.random() < 0.85:
            first = draw.randrange(min(len(unset), draw.choice((1, 6, 40))))
            return Ack(name, tuple(unset[first : first + draw.choice((1, 3, MAX_MESSAGES))]))
        top = len(bodies) + (draw.random() < 0.1)
        return Ack(name, tuple(draw.randrange(top) for _ in range(draw.randint(1, 4))))

    def commit(self) -> None:
        command = self.command()
        expected = self.reference.apply(command)
        data = encode(command)
        assert self.undying.apply(data).result == expected
        self.log.append((data, expected))
        if self.draw.random() < 0.3:
            self.machine.room(self.draw.randrange(200))
        self.apply(data, expected)
        self.machine.room(None)
        self.write(())

    def apply(self, data: bytes, expected: Result) -> None:
        applied = self.process.state.apply(data)
        assert applied.result == expected
        self.write(applied.writes)

    def write(self, writes: Sequence[Write]) -> None:
        self.unwritten += writes
        try:
            while self.unwritten:
                self.process.files.write(self.unwritten[0])
                del self.unwritten[0]
        except DiskFull:
            self.full += 1

    async def make_snapshot(self) -> None:
        """Maybe to the end; else the node dies while it is under way."""
        process, index, copied = self.process, len(self.log), self.process.state.copy()
        files = snapshot.files(copied)
        sync = asyncio.ensure_future(process.files.sync(files))
        while not sync.done() and self.draw.random() < 0.9:
            await self.loop.sleep_until(self.loop.now_ns + self.draw.randrange(1, 3_000_000))
            self.commit()
        if not sync.done():
            self.die()
            sync.cancel()
            return
        await sync
        self.published = index, snapshot.encode(copied)
        self.snapshots += 1
        names = process.files.older_than(copied)
        self.removed += len(names)
        process.files.remove(names)

    def die(self) -> None:
        if self.draw.random() < 0.6:
            self.machine.lose_power()
        self.start(self.published)

    def start(self, published: tuple[int, bytes]) -> None:
        self.restarts += 1
        self.unwritten.clear()
        index, record = published
        place = f"files-{self.place}"
        self.process = self.machine.boot(snapshot.decode(record), place, self.files)
        for data, expected in self.log[index:]:
            self.apply(data, expected)
            if self.draw.random() < 0.02:
                self.die()
                return

    async def install(self) -> None:
        """What another node has comes in the place of what this one has."""
        copied = self.process.state.copy()
        self.place = 1 - self.place
        disk = self.process.disk
        for each in snapshot.files(copied):
            file = disk.open(f"files-{self.place}/{each.name}")
            file.truncate(0)
            file.append(disk.open(f"files-{1 - self.place}/{each.name}").read_at(0, each.size))
            await file.fsync()
        self.published = len(self.log), snapshot.encode(copied)
        if self.draw.random() < 0.5:
            self.die()
            return
        copied = self.process.files.restore(f"files-{self.place}", copied)
        self.process.state = QueueGroupState(FILE_BYTES, MAX_QUEUES, copied)

    def check(self) -> None:
        messages = self.reference.messages()
        assert self.process.messages() == messages
        assert [queue.unacknowledged for queue in self.process.state.queues.values()] == [*map(len, messages.values())]
        assert self.process.state.digest() == self.undying.digest()

    async def run(self, count: int) -> None:
        for _ in range(count):
            kind = self.draw.random()
            if kind < 0.85:
                self.commit()
            elif kind < 0.93:
                await self.make_snapshot()
            elif kind < 0.98:
                self.die()
            else:
                await self.install()
            self.check()


@pytest.mark.parametrize("seed", range(40))
def test_a_node_that_dies_is_like_one_that_never_did(seed: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        play = Play(loop, seed)
        await play.run(200)
        assert min(play.snapshots, play.restarts, play.full) > 0

    simulate(body)


def test_files_that_go_are_removed_from_the_disk() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        play = Play(loop, 1)
        await play.run(400)
        assert play.removed > 20
        copied = play.process.state.copy()
        play.process.files.remove(play.process.files.older_than(copied))
        assert play.process.files.names_on_disk() == sorted(each.name for each in snapshot.files(copied))

    simulate(body)


class Kept(MessageFiles):
    """What files hold behind a snapshot's lengths stays, and is in the queues again: the log comes on top of it."""

    def reset(self, copied: CopiedState) -> CopiedState:
        queues = {queue.name: queue for queue in copied.queues}
        for name in self.names_on_disk():
            queue_name, first = name.split(".")
            queue = queues.get(queue_name, CopiedQueue(queue_name, 0, 0, (), b""))
            firsts = [file.first for file in queue.files]
            if int(first) in (*firsts[-1:], queue.next_number):
                queues[queue_name] = self._with_all_of(queue, int(first))
            elif int(first) not in firsts:
                self._disk.remove(self.path(name))
        return CopiedState(tuple(queues.values()))

    def _with_all_of(self, queue: CopiedQueue, first: int) -> CopiedQueue:
        name = file_name(queue.name, first)
        file = self._disk.open(self.path(name))
        size, number, crc = 0, first, 0
        for data, ends in pieces(file, file.size, first):
            size, number, crc = size + ends[-1], number + len(ends), crc32(data, crc)
        older = (each for each in queue.files if each.first < first)
        return replace(queue, files=(*older, FileState(first, size, crc)), next_number=number)


class Unsynced(MessageFiles):
    async def sync(self, files: object) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("files", [Kept, Unsynced])
def test_files_that_are_not_cut_or_not_synced_are_noticed(files: type[MessageFiles]) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        await Play(loop, 1, files).run(200)

    with pytest.raises((AssertionError, StorageCorrupt)):
        simulate(body)
