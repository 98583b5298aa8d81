"""The index of keys: where in the log the messages of a topic with a key stand.

Dispatch adds to it, as it does to consume queues, so it holds confirmed messages only; it is cut with the log, and a
checkpoint says how far its files are good. What lies behind that is thrown away at a restart, and dispatched anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from system_under_test.runtime.host import Disk, DiskError, File
from system_under_test.storage.errors import StorageFailed
from system_under_test.storage.index_file import IndexFile, key_hash
from system_under_test.storage.message import MessageHeader

_ROLLED_BACK: Final = 8 | 4
"""Says in sysFlag what becomes of a transaction's message: this one is never shown."""


class KeyIndex:
    """Files in `directory`, named by the offset of their first message, each with so many slots and entries."""

    def __init__(self, disk: Disk, directory: str, slots: int, capacity: int) -> None:
        self._disk = disk
        self._directory = directory
        self._slots = slots
        self._capacity = capacity
        self._files: list[IndexFile] = []
        self._durable: dict[str, int] = {}
        """Entries of each file that is on disk."""
        self._open: dict[str, File] = {}
        self._retired: dict[str, None] = {}
        """Paths that a checkpoint may still name."""
        self._end = 0
        """All keys of messages before this offset are there."""

    @property
    def last_update(self) -> tuple[int, int]:
        """When the newest message with a key was stored, in ms, and where it stands; zeros if there is none."""
        return (self._files[-1].end_ms, self._files[-1].end_offset) if self._files else (0, 0)

    def add(self, message: MessageHeader) -> None:
        """A message that is there already is passed over."""
        offset = message.physical_offset
        if offset < self._end or not message.keys or message.sys_flag & _ROLLED_BACK == _ROLLED_BACK:
            return
        keys = message.keys[: self._capacity - 1]
        if not self._files or not self._files[-1].has_room(len(keys)):
            file = IndexFile(offset, message.store_timestamp_ms, self._slots, self._capacity)
            self._files.append(file)
            self._retired.pop(self._path(file.name), None)
        for key in keys:
            self._files[-1].add(key_hash(message.topic, key), offset, message.store_timestamp_ms)
        self._end = offset + 1

    def find(self, topic: str, key: str) -> Iterator[int]:
        """Where messages may stand that have this key, newest first: others have the same hash."""
        code = key_hash(topic, key)
        for file in reversed(self._files):
            last = -1
            for offset in file.find(code):
                if offset != last:
                    yield offset
                last = offset

    def truncate(self, offset: int) -> None:
        """Drop, in memory, the keys of messages from `offset` on; `persist` makes it durable."""
        self._end = min(self._end, offset)
        while self._files and self._files[-1].end_offset >= offset:
            file = self._files[-1]
            file.truncate(offset)
            if file.name in self._durable:
                self._durable[file.name] = min(self._durable[file.name], file.entries)
            if file.entries:
                return
            self._retire(self._files.pop())

    def delete_prefix(self, offset: int) -> None:
        """Drop, in memory, the files whose messages all stand before `offset`."""
        while self._files and self._files[0].end_offset < offset:
            self._retire(self._files.pop(0))

    def load(self, durable_entries: Mapping[str, int] | None) -> bool:
        """Read what a checkpoint vouches for: file name → entries. Other files are removed.

        False if there is no such checkpoint, or a file does not hold what it should: then nothing is there.
        """
        vouched = dict(durable_entries or {})
        for path in self._disk.list(self._directory):
            if path.rpartition("/")[2] not in vouched:
                self._disk.remove(path)
        for name in sorted(vouched):
            file = IndexFile(int(name), 0, self._slots, self._capacity)
            is_whole = file.read(self._file(name), vouched[name])
            self._files.append(file)
            self._durable[name] = vouched[name]
            self._end = file.end_offset + 1
            if not is_whole:
                while self._files:
                    self._retire(self._files.pop())
                self._end = 0
                return False
        return durable_entries is not None

    def durable_entries(self) -> dict[str, int]:
        """File name → entries, as far as the last `persist` and the cuts since allow."""
        return {name: entries for name, entries in self._durable.items() if entries}

    async def persist(self) -> dict[str, int]:
        """Make the index durable as it is at the call; returns its `durable_entries`. Raises StorageFailed.

        Files given up are removed by the next call: until a checkpoint was written without them they are needed.
        """
        for path in self._retired:
            self._disk.remove(path)
        self._retired.clear()
        try:
            changed = [file for file in self._files if self._durable.get(file.name, 0) != file.entries]
            for file in changed:
                if file.name not in self._durable:
                    self._file(file.name).truncate(0)
                file.write(self._file(file.name), self._durable.setdefault(file.name, 0))
            written = {file.name: file.entries for file in changed}
            for name in written:
                await self._file(name).fsync()
        except DiskError as error:
            raise StorageFailed(f"index: {error}") from error
        for file in self._files:
            if file.name in written:
                # Meanwhile it may have been cut.
                self._durable[file.name] = min(written[file.name], file.entries)
        return self.durable_entries()

    def _retire(self, file: IndexFile) -> None:
        if self._durable.pop(file.name, None) is not None:
            self._retired[self._path(file.name)] = None
        opened = self._open.pop(file.name, None)
        if opened is not None:
            opened.close()

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def _file(self, name: str) -> File:
        if name not in self._open:
            self._open[name] = self._disk.open(self._path(name))
        return self._open[name]
