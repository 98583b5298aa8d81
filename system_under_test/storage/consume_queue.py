"""Consume queues: for each (topic, queue) the places of its messages in the commit log, by queue offset.

An entry is 20 bytes as in RocketMQ: physical offset 8, size 4, tags code 8. Only dispatch appends entries. All
entries live in memory in arrays (20 bytes each); files are written and fsynced by `persist`, together, so that a
checkpoint can say how far they are good. What lies behind that is thrown away at a restart and dispatched anew.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from system_under_test.runtime.host import Disk, DiskError, File
from system_under_test.storage.errors import StorageCorrupt, StorageFailed

_ENTRY = struct.Struct(">qiq")


class QueueEntry(NamedTuple):
    """Where one message stands."""

    physical_offset: int
    size: int
    tags_code: int


class ConsumeQueue:
    """One queue's entries from `min_offset` (inclusive) to `max_offset` (exclusive), both queue offsets."""

    __slots__ = ("_offsets", "_sizes", "_tags", "min_offset", "name", "queue_id", "topic")

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.name = queue_name(topic, queue_id)
        self.min_offset = 0
        self._offsets = array("q")
        self._sizes = array("i")
        self._tags = array("q")

    @property
    def max_offset(self) -> int:
        return self.min_offset + len(self._offsets)

    def append(self, queue_offset: int, physical_offset: int, size: int, tags_code: int) -> None:
        """Add the entry of the next message; an entry that is there already is passed over.

        An empty queue begins wherever its first message says. Raises StorageCorrupt if an entry would be missing.
        """
        position = queue_offset - self.min_offset
        held = len(self._offsets)
        if position != held:
            if held == 0:
                self.min_offset = queue_offset
            elif position > held:
                raise StorageCorrupt(f"{self.name}: {queue_offset} follows {self.max_offset - 1}")
            else:
                return
        self._offsets.append(physical_offset)
        self._sizes.append(size)
        self._tags.append(tags_code)

    @property
    def end_of_last_message(self) -> int:
        """The physical offset behind the last entry's message; 0 without entries."""
        return self._offsets[-1] + self._sizes[-1] if self._offsets else 0

    def entry(self, queue_offset: int) -> QueueEntry:
        """Raises IndexError outside [min_offset, max_offset)."""
        position = queue_offset - self.min_offset
        if position < 0:
            raise IndexError(queue_offset)
        return QueueEntry(self._offsets[position], self._sizes[position], self._tags[position])

    def range(self, queue_offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """(physical offset, size, tags code) of up to `count` entries; `queue_offset` is at least min_offset."""
        start = queue_offset - self.min_offset
        end = start + count
        return zip(self._offsets[start:end], self._sizes[start:end], self._tags[start:end], strict=True)

    def truncate(self, physical_offset: int) -> None:
        """Drop the entries of messages that do not end at `physical_offset` or before."""
        kept = bisect_left(self._offsets, physical_offset)
        if kept and self._offsets[kept - 1] + self._sizes[kept - 1] > physical_offset:
            kept -= 1
        del self._offsets[kept:], self._sizes[kept:], self._tags[kept:]

    def delete_prefix(self, physical_offset: int) -> None:
        """Drop the entries of messages before `physical_offset`."""
        gone = bisect_left(self._offsets, physical_offset)
        del self._offsets[:gone], self._sizes[:gone], self._tags[:gone]
        self.min_offset += gone

    def offset_at(self, physical_offset: int) -> int:
        """The queue offset of the first message at `physical_offset` or behind it, as far as there are entries."""
        return self.min_offset + bisect_left(self._offsets, physical_offset)

    def pack(self, start: int, end: int) -> bytes:
        """The entries of queue offsets [start, end) as they stand in files."""
        first = start - self.min_offset
        last = end - self.min_offset
        rows = zip(self._offsets[first:last], self._sizes[first:last], self._tags[first:last], strict=True)
        return b"".join([_ENTRY.pack(*row) for row in rows])


def queue_name(topic: str, queue_id: int) -> str:
    """`+` cannot stand in a topic's name."""
    return f"{topic}+{queue_id}"


class _QueueFile:
    """The file of one queue, holding entries [first, end)."""

    __slots__ = ("end", "file", "first", "path")

    def __init__(self, disk: Disk, path: str, first: int, end: int) -> None:
        self.path = path
        self.file: File = disk.open(path)
        self.first = first
        self.end = end


class ConsumeQueues:
    """All consume queues of one store and their files, named `topic+queue+first queue offset`."""

    def __init__(
        self, disk: Disk, directory: str, new_queue: Callable[[str, int], ConsumeQueue] = ConsumeQueue
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._new_queue = new_queue
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._files: dict[str, _QueueFile] = {}
        self._retired: list[str] = []
        self._beginnings: dict[tuple[str, int], int] = {}

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get((topic, queue_id))

    def get_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            queue = self._queues[topic, queue_id] = self._new_queue(topic, queue_id)
            queue.min_offset = self._beginnings.get((topic, queue_id), 0)
        return queue

    def __iter__(self) -> Iterator[ConsumeQueue]:
        return iter(self._queues.values())

    def load(self, durable_entries: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
        """Read what a checkpoint vouches for: queue name → (first, end) of its file. Other files are removed.

        Returns the topics with a queue that has fewer entries than that: its disk lost what was durable.
        """
        short: dict[str, None] = {}
        vouched = {self._path(name, first) for name, (first, _) in durable_entries.items()}
        for path in self._disk.list(self._directory):
            if path not in vouched:
                self._disk.remove(path)
        for name, (first, end) in durable_entries.items():
            topic, _, queue_id = name.rpartition("+")
            queue = self.get_or_create(topic, int(queue_id))
            queue.min_offset = first
            file = self._files[name] = _QueueFile(self._disk, self._path(name, first), first, end)
            data = file.file.read_at(0, (end - first) * _ENTRY.size)
            for position, row in enumerate(_ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size])):
                queue.append(first + position, *row)
            file.end = queue.max_offset
            if file.end < end:
                short[topic] = None
        return tuple(short)

    def know_beginnings(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Where queues begin that have no message in the log: (topic, queue id) -> queue offset."""
        self._beginnings = dict(offsets)
        for topic, queue_id in offsets:
            self.get_or_create(topic, queue_id)

    def begin_anew(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Drop all queues, in memory; they begin at these offsets, others at 0."""
        for name in list(self._files):
            self._retire(name)
        self._queues.clear()
        self.know_beginnings(offsets)

    def offsets_at(self, physical_offset: int) -> dict[tuple[str, int], int]:
        """The queue offset of each queue's first message at `physical_offset` or behind it, where that is not 0."""
        offsets = {key: queue.offset_at(physical_offset) for key, queue in self._queues.items()}
        return {key: offset for key, offset in offsets.items() if offset}

    def truncate(self, physical_offset: int) -> None:
        """Drop, in memory, the entries of messages that reach beyond `physical_offset`; `persist` makes it durable."""
        for queue in self._queues.values():
            queue.truncate(physical_offset)
            file = self._files.get(queue.name)
            if file is not None:
                file.end = min(file.end, queue.max_offset)

    def delete_prefix(self, physical_offset: int) -> None:
        """Drop, in memory, the entries of messages before `physical_offset`."""
        for queue in self._queues.values():
            queue.delete_prefix(physical_offset)

    def drop_topic(self, topic: str) -> None:
        """Drop the topic's queues, in memory; `persist` makes it durable."""
        for key, queue in list(self._queues.items()):
            if queue.topic == topic:
                del self._queues[key]
                self._retire(queue.name)
        self.know_beginnings(self._beginnings)

    def _retire(self, name: str) -> None:
        file = self._files.pop(name, None)
        if file is not None:
            file.file.close()
            self._retired.append(file.path)

    def durable_entries(self) -> dict[str, tuple[int, int]]:
        """Queue name → (first, end) of its file, as far as the last `persist` and the cuts since allow."""
        return {name: (file.first, file.end) for name, file in self._files.items()}

    async def persist(self) -> dict[str, tuple[int, int]]:
        """Make every queue durable as it is at the call; returns its `durable_entries`. Raises StorageFailed.

        Files given up are removed by the next call: until a checkpoint names their successors they are needed.
        """
        for path in self._retired:
            self._disk.remove(path)
        self._retired.clear()
        try:
            changed = [file for queue in self._queues.values() if (file := self._write(queue)) is not None]
            durable_entries = self.durable_entries()
            for file in changed:
                await file.file.fsync()
        except DiskError as error:
            raise StorageFailed(f"consume queue: {error}") from error
        return durable_entries

    def _write(self, queue: ConsumeQueue) -> _QueueFile | None:
        file = self._files.get(queue.name)
        if file is None or not self._worth_keeping(file, queue):
            if file is not None:
                file.file.close()
                self._retired.append(file.path)
            first = queue.min_offset
            file = self._files[queue.name] = _QueueFile(self._disk, self._path(queue.name, first), first, first)
        kept = (file.end - file.first) * _ENTRY.size
        if file.file.size == kept and file.end == queue.max_offset:
            return None
        if file.file.size != kept:
            file.file.truncate(kept)
        file.file.append(queue.pack(file.end, queue.max_offset))
        file.end = queue.max_offset
        return file

    def _worth_keeping(self, file: _QueueFile, queue: ConsumeQueue) -> bool:
        """Whether the file continues to the queue's entries, and at most half of it is deleted ones."""
        dead = queue.min_offset - file.first
        return dead == 0 or (0 < dead <= queue.max_offset - queue.min_offset and queue.min_offset <= file.end)

    def _path(self, name: str, first: int) -> str:
        return f"{self._directory}/{name}+{first:020d}"
