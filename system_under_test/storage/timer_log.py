"""The timer log: what is in the wheel's slots, on disk, as RocketMQ lays it out; units of a slot are a chain.

It is made of the replicated topic of timers whenever a master begins, so it is never synced, never trusted after a
start, and never shared between replicas: all that has to survive is the topic and how far it is done. It is there so
that what waits for days does not have to be in memory. A file goes once nothing in it waits any more.

A unit of 52 bytes, big-endian:
`size:4 | position of the slot's unit before:8 | magic:4 | time of writing, ms:8 | ms from then to the slot:4 |
physical offset of the message:8 | its size:4 | 0:4 | its offset in the topic's queue:8`
(RocketMQ has the hash of the real topic before a last field that it reserves.)
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from system_under_test.runtime.host import Disk, File

UNIT: Final = struct.Struct(">iqiqiqiiq")
MAGIC: Final = 1
MAGIC_ROLL: Final = 2
"""Stands beside MAGIC: at this time the message is written to the topic once more, for it is due later."""
MAGIC_DELETE: Final = 4
"""Stands beside MAGIC: it is no message that comes out, but takes another one back."""
NONE: Final = -1


class TimerUnit(NamedTuple):
    """One message that waits. `previous` is NONE for a slot's first."""

    previous: int
    magic: int
    written_ms: int
    wait_ms: int
    physical_offset: int
    size: int
    queue_offset: int

    @property
    def rolls(self) -> bool:
        return self.magic & MAGIC_ROLL != 0

    @property
    def takes_back(self) -> bool:
        return self.magic & MAGIC_DELETE != 0

    def encode(self) -> bytes:
        return UNIT.pack(UNIT.size, *self[:6], 0, self.queue_offset)

    @classmethod
    def decode(cls, data: bytes) -> TimerUnit:
        _, previous, magic, written_ms, wait_ms, physical_offset, size, _, queue_offset = UNIT.unpack(data)
        return cls(previous, magic, written_ms, wait_ms, physical_offset, size, queue_offset)


class TimerLog:
    """Positions are in bytes from the log's beginning; files hold `file_bytes` of them, rounded down to whole units."""

    def __init__(self, disk: Disk, directory: str, file_bytes: int) -> None:
        self._disk = disk
        self._directory = directory
        self._file_bytes = max(1, file_bytes // UNIT.size) * UNIT.size
        self._files: dict[int, File] = {}
        self._waiting: dict[int, int] = {}
        """A file's number -> how many of its units still wait."""
        self._end = 0

    @property
    def files(self) -> int:
        return len(self._files)

    def clear(self) -> None:
        """Begin anew; files of an earlier process go as well."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._waiting.clear()
        self._end = 0
        for path in self._disk.list(self._directory):
            self._disk.remove(path)

    def append(self, unit: TimerUnit) -> int:
        """The unit's position. Raises DiskFull, when nothing was written, and DiskError."""
        position = self._end
        number = position // self._file_bytes
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = self._disk.open(self._path(number))
        file.append(unit.encode())
        self._waiting[number] = self._waiting.get(number, 0) + 1
        self._end += UNIT.size
        return position

    def read(self, position: int) -> TimerUnit:
        """Raises DiskError."""
        number, at = divmod(position, self._file_bytes)
        return TimerUnit.decode(self._files[number].read_at(at, UNIT.size))

    def release(self, position: int) -> None:
        """The unit waits no more: nobody will read it again."""
        number = position // self._file_bytes
        self._waiting[number] -= 1
        if self._waiting[number] == 0 and (number + 1) * self._file_bytes <= self._end:
            self._files.pop(number).close()
            del self._waiting[number]
            self._disk.remove(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self._directory}/{number * self._file_bytes:020d}"
