"""One file of the index of keys, laid out as RocketMQ's, big-endian:

header (40 bytes) | slots of 4 bytes, one a remainder of a key's hash | entries of 20 bytes, one a message and key

- header: `begin time:8 | end time:8 | begin offset:8 | end offset:8 | slots in use:4 | count:4`: when the first and the
  last message were stored, in ms, where they stand in the log, and how many entries there are, plus one, for they
  count from 1;
- slot: the newest entry of its keys, 0 for none;
- entry: `hash of the key:4 | offset in the log:8 | seconds since begin time:4 | the slot's entry before this one:4`.

All of it lives in memory in arrays. Entries are only ever added and taken away at the end, so of a file on disk the
first entries are enough to build the slots again: slots and header in it are for other readers.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from system_under_test.runtime.host import File
from system_under_test.storage.tags_code import tags_code

_HEADER: Final = struct.Struct(">qqqqii")
_ENTRY: Final = struct.Struct(">iqii")
_MAX_SECONDS: Final = 2**31 - 1


def key_hash(topic: str, key: str) -> int:
    """From 0 to 2^31 - 1."""
    code = abs(tags_code(f"{topic}#{key}"))
    return code if code < 2**31 else 0


class IndexFile:
    """Up to `capacity` - 1 entries in `slots` chains, of messages from `begin_offset` on."""

    def __init__(self, begin_offset: int, begin_ms: int, slots: int, capacity: int) -> None:
        self.name = f"{begin_offset:020d}"
        self.begin_offset = begin_offset
        self.begin_ms = begin_ms
        self.end_ms = begin_ms
        self._capacity = capacity
        self._slots = array("i", bytes(4 * slots))
        self._slots_in_use = 0
        self._hashes = array("i")
        self._offsets = array("q")
        self._seconds = array("i")
        self._previous = array("i")
        self._dirty = range(0)
        """Slots that a file on disk may lack."""

    @property
    def entries(self) -> int:
        return len(self._offsets)

    @property
    def end_offset(self) -> int:
        """Where the last message stands; -1 without any."""
        return self._offsets[-1] if self._offsets else -1

    def has_room(self, keys: int) -> bool:
        return self.entries + keys < self._capacity

    def add(self, code: int, offset: int, stored_ms: int) -> None:
        """There must be room."""
        seconds = (stored_ms - self.begin_ms) // 1000
        self._link(code, offset, max(0, min(seconds, _MAX_SECONDS)))
        self.end_ms = stored_ms

    def find(self, code: int) -> Iterator[int]:
        """Where messages with a key of this hash stand, from the newest to the oldest."""
        entry = self._slots[code % len(self._slots)]
        while entry:
            if self._hashes[entry - 1] == code:
                yield self._offsets[entry - 1]
            entry = self._previous[entry - 1]

    def truncate(self, offset: int) -> None:
        """Take away the entries of messages from `offset` on."""
        kept = bisect_left(self._offsets, offset)
        while self.entries > kept:
            slot = self._hashes.pop() % len(self._slots)
            self._slots[slot] = previous = self._previous.pop()
            self._slots_in_use -= previous == 0
            self._touch(slot)
            self._offsets.pop()
            self._seconds.pop()

    def write(self, file: File, durable: int) -> None:
        """What the file lacks, of which the first `durable` entries are good; not durable before an fsync.

        Raises DiskError.
        """
        entries_start = _HEADER.size + 4 * len(self._slots)
        if file.size < entries_start:
            file.truncate(entries_start)
            self._dirty = range(len(self._slots))
        if self._dirty:
            slots = self._slots[self._dirty.start : self._dirty.stop]
            slots.byteswap()
            file.write_at(_HEADER.size + 4 * self._dirty.start, slots.tobytes())
            self._dirty = range(0)
        rows = zip(
            self._hashes[durable:],
            self._offsets[durable:],
            self._seconds[durable:],
            self._previous[durable:],
            strict=True,
        )
        # Of the first entry, which counts as number 0, nothing is ever used.
        file.write_at(entries_start + (1 + durable) * _ENTRY.size, b"".join([_ENTRY.pack(*row) for row in rows]))
        file.write_at(
            0,
            _HEADER.pack(
                self.begin_ms,
                self.end_ms,
                self.begin_offset,
                max(self.end_offset, self.begin_offset),
                self._slots_in_use,
                self.entries + 1,
            ),
        )

    def read(self, file: File, entries: int) -> bool:
        """Take over the first entries of the file; False if it does not hold so many that make sense."""
        header = file.read_at(0, _HEADER.size)
        start = _HEADER.size + 4 * len(self._slots) + _ENTRY.size
        data = file.read_at(start, entries * _ENTRY.size)
        if len(header) < _HEADER.size or len(data) < entries * _ENTRY.size or entries >= self._capacity:
            return False
        self.begin_ms, self.end_ms, begin_offset, *_ = _HEADER.unpack(header)
        if begin_offset != self.begin_offset:
            return False
        last = begin_offset
        for code, offset, seconds, _ in _ENTRY.iter_unpack(data):
            if code < 0 or offset < last or seconds < 0:
                return False
            self._link(code, offset, seconds)
            last = offset
        return True

    def _link(self, code: int, offset: int, seconds: int) -> None:
        slot = code % len(self._slots)
        previous = self._slots[slot]
        self._hashes.append(code)
        self._offsets.append(offset)
        self._seconds.append(seconds)
        self._previous.append(previous)
        self._slots[slot] = self.entries
        self._slots_in_use += previous == 0
        self._touch(slot)

    def _touch(self, slot: int) -> None:
        if not self._dirty:
            self._dirty = range(slot, slot + 1)
        elif slot not in self._dirty:
            self._dirty = range(min(slot, self._dirty.start), max(slot + 1, self._dirty.stop))
