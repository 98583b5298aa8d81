"""The log of a Raft node in files: segments, each of which continues the one before.

A segment is `<base index>-<base term>`, begins with a header that says the same, and holds the entries behind its base.
Every record carries a CRC-32 that continues the one of the record before it, and the header says which one its first
record continues, so that recovery keeps exactly a prefix of what was written: it stops at the first record that does
not fit, which after a loss of power is the torn or missing tail. The chain matters because the log is cut and
overwritten: without it an old entry could be read behind a new one that never preceded it.

Segments go as a whole: those before what a snapshot stands for, once the snapshot is durable, and those behind a cut at
once. A loss of power may bring back what went, and leave out what came, each by itself:

- A segment behind a cut comes back: it continues a record that is there no more, so recovery removes it; or the cut was
  not durable either, and the log is the one before the cut, of which nothing was acknowledged as gone.
- A segment behind a cut is gone, and the cut is not durable: the log ends earlier than before, without entries that the
  leader of a later term has overwritten. No majority ever has those, so nobody misses them.
- A segment before a snapshot comes back, alone or with others: the log begins earlier, or it is not of the chain that
  leads to the snapshot, and is removed. It ends as it did when it went, for that is durable before it goes.
- A log that begins anew behind a snapshot comes without the snapshot: it continues nothing, and the old log is there.
- The snapshot comes without the log that begins behind it: nothing of that log was acknowledged, and it is begun again.

Rot inside the durable part is taken for a torn tail where it is found at a start, and is an error where it is later.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from system_under_test.raft.message import Entry, Kind
from system_under_test.runtime.host import Disk, File
from system_under_test.runtime.rewrite import write_again
from system_under_test.storage.errors import StorageCorrupt

SEGMENT_BYTES = 16 * 1024 * 1024
"""A segment that has so many bytes is followed by the next one."""
_HEADER = struct.Struct(">QQII")
"""Base index and term, the CRC that the first record continues, and a CRC-32 of these."""
_RECORD = struct.Struct(">IIQQB")
"""CRC, length of the data, index, term, kind; the data follows."""
_BEHIND_CRC = struct.Struct(">IQQB")
_READ_BYTES = 1024 * 1024


class _Segment:
    def __init__(self, path: str, file: File, base_index: int, base_term: int, base_crc: int) -> None:
        self.path = path
        self.file = file
        self.base_index = base_index
        self.base_term = base_term
        self.base_crc = base_crc
        self.last_term = base_term
        self.ends = array("Q")
        """Of each entry's record, by index - base index - 1."""
        self.crcs = array("I")
        self.is_dirty = True

    @property
    def last_index(self) -> int:
        return self.base_index + len(self.ends)

    @property
    def last_crc(self) -> int:
        return self.crcs[-1] if self.crcs else self.base_crc

    @property
    def size(self) -> int:
        return self.end_of(self.last_index)

    def end_of(self, index: int) -> int:
        """Where the record of this entry ends; of the base, where the first one begins."""
        return self.ends[index - self.base_index - 1] if index > self.base_index else _HEADER.size

    def crc_of(self, index: int) -> int:
        return self.crcs[index - self.base_index - 1] if index > self.base_index else self.base_crc

    def term_of(self, index: int) -> int:
        """Of an entry, or of the base. Raises DiskError."""
        if index == self.base_index:
            return self.base_term
        head = self.file.read_at(self.end_of(index - 1), _RECORD.size)
        return int(_RECORD.unpack(head)[3])

    def continues(self, other: _Segment) -> bool:
        end = other.last_index, other.last_term, other.last_crc
        return (self.base_index, self.base_term, self.base_crc) == end

    def read(self, first: int, last: int) -> list[Entry]:
        """Entries from `first` on, at most to `last`, which are here. Raises DiskError, StorageCorrupt."""
        start = self.end_of(first - 1)
        enough = bisect_right(self.ends, start + _READ_BYTES) + self.base_index
        last = max(first, min(last, enough))
        data = memoryview(self.file.read_at(start, self.end_of(last) - start))
        entries, at, crc = [], 0, self.crc_of(first - 1)
        for index in range(first, last + 1):
            end = self.end_of(index) - start
            if zlib.crc32(data[at + 4 : end], crc) != self.crc_of(index):
                raise StorageCorrupt(f"{self.path} is harmed at entry {index}: its checksum does not fit")
            crc = self.crc_of(index)
            _, _, found, term, kind = _RECORD.unpack_from(data, at)
            entries.append(Entry(found, term, bytes(data[at + _RECORD.size : end]), Kind(kind)))
            at = end
        return entries

    def append(self, entries: Sequence[Entry]) -> None:
        """Raises DiskFull, DiskError."""
        at, crc = self.size, self.last_crc
        parts: list[bytes] = []
        for entry in entries:
            data = entry.data
            head = _BEHIND_CRC.pack(len(data), entry.index, entry.term, entry.kind)
            crc = zlib.crc32(data, zlib.crc32(head, crc))
            parts += (crc.to_bytes(4, "big"), head, data)
            at += _RECORD.size + len(data)
            self.ends.append(at)
            self.crcs.append(crc)
        self.file.append(b"".join(parts))
        self.last_term = entries[-1].term
        self.is_dirty = True

    def cut(self, index: int) -> None:
        """Keep the entries up to this one. Raises DiskError."""
        self.last_term = self.term_of(index)
        del self.ends[index - self.base_index :]
        del self.crcs[index - self.base_index :]
        self.file.truncate(self.size)
        self.is_dirty = True

    def recover(self) -> None:
        """Find the records that are there, up to the first that does not fit. Raises DiskError."""
        file, size = self.file, self.file.size
        at, crc = _HEADER.size, self.base_crc
        buffer, start = b"", 0
        while at + _RECORD.size <= size:
            if at + _RECORD.size > start + len(buffer):
                buffer, start = file.read_at(at, _READ_BYTES), at
            stored, length, index, term, _ = _RECORD.unpack_from(buffer, at - start)
            end = at + _RECORD.size + length
            if end > size or index != self.last_index + 1:
                break
            if end > start + len(buffer):
                buffer, start = file.read_at(at, max(_READ_BYTES, end - at)), at
            if zlib.crc32(buffer[at + 4 - start : end - start], crc) != stored:
                break
            self.ends.append(end)
            self.crcs.append(stored)
            self.last_term = term
            at, crc = end, stored


class Segments:
    """What is written is visible at once, and durable after the next `sync`."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._segment_bytes = SEGMENT_BYTES
        self._segments: list[_Segment] = []
        """In their order; each continues the one before. There is always one."""
        self._superseded: list[_Segment] = []
        """Those that go once the newest snapshot is durable."""
        self._unused: list[File] = []
        """Of segments that are gone, and with which a `sync` may still be busy."""

    @property
    def last_index(self) -> int:
        return self._segments[-1].last_index

    def open(self, index: int, term: int, segment_bytes: int) -> None:
        """Recover the log that leads to this entry, the snapshot's last one, or begins behind it; begin it there if
        there is none. What was read is durable after the next `sync`. Raises DiskFull, DiskError."""
        self._segment_bytes = segment_bytes
        paths = self._disk.list(self._directory)
        found = sorted(filter(None, map(self._recovered, paths)), key=lambda segment: segment.base_index)
        chains: list[list[_Segment]] = []
        for segment in found:
            before = next((chain for chain in chains if segment.continues(chain[-1])), None)
            if before is None:
                chains.append([segment])
            else:
                before.append(segment)
        self._segments = next((chain for chain in chains if _leads_to(chain, index, term)), [])
        kept = {segment.path for segment in self._segments}
        for path in paths:
            if path not in kept:
                self._disk.remove(path)
        for segment in found:
            if segment.path not in kept:
                segment.file.close()
        for segment in self._segments:
            if segment.file.size > segment.size:
                segment.file.truncate(segment.size)
            # A killed process leaves bytes that are readable but not yet durable; a process that reads them will
            # acknowledge them, and a later loss of power must not take them back.
            write_again(segment.file, 0, segment.size)
        if not self._segments:
            self._begin_segment(index, term, 0)

    def read(self, first: int, last: int) -> list[Entry]:
        """Entries from the first to the last, which are here: one at least, and then no more than are read in one go.
        Raises DiskError."""
        segment = self._segments[self._place_of(first)]
        return segment.read(first, min(last, segment.last_index))

    def term_at(self, index: int) -> int:
        """Of an entry that is here, or before the first one. Raises DiskError."""
        return self._segments[self._place_of(index + 1)].term_of(index)

    def entries(self, index: int) -> Iterator[Entry]:
        """All after this one that are there when it begins. Raises DiskError."""
        last_index = self.last_index
        while index < last_index:
            for entry in self.read(index + 1, last_index):
                yield entry
                index = entry.index

    def append(self, entries: Sequence[Entry]) -> None:
        """Put them behind the entry before the first of them, from where on all is cut. Raises DiskFull, DiskError."""
        index = entries[0].index - 1
        assert self._segments[0].base_index <= index <= self.last_index, "a gap in the log"
        if index < self.last_index:
            self._cut(index)
        last = self._segments[-1]
        if last.size >= self._segment_bytes and last.ends:
            last = self._begin_segment(last.last_index, last.last_term, last.last_crc)
        last.append(entries)

    def begin_behind(self, index: int) -> None:
        """The entries up to this one, which is here, are of no use once the snapshot is durable that comes now."""
        count = bisect_right(self._segments, index, key=lambda segment: segment.last_index)
        count = min(count, len(self._segments) - 1)
        self._superseded += self._segments[:count]
        del self._segments[:count]

    def begin_anew(self, index: int, term: int) -> None:
        """Nothing that is here is of use once the snapshot is durable that comes now, and ends with this entry."""
        self._superseded += self._segments
        self._segments = []
        self._begin_segment(index, term, 0)

    def bytes_behind(self, index: int) -> int:
        """So much the records of the entries after this one take; it is the base or behind it."""
        place = self._place_of(index + 1)
        behind = sum(segment.size - _HEADER.size for segment in self._segments[place + 1 :])
        return behind + self._segments[place].size - self._segments[place].end_of(index)

    def base_behind_which(self, size: int, index: int) -> int:
        """Where a segment begins so that the entries from there up to this one take that many bytes, or all there are;
        `index` itself where nothing is wanted."""
        if not size:
            return index
        wanted = self.bytes_behind(index) + size
        bases = [segment.base_index for segment in self._segments if segment.base_index <= index]
        return next((base for base in reversed(bases) if self.bytes_behind(base) >= wanted), bases[0])

    def unsynced(self) -> Unsynced:
        """What a `sync` that begins now has to make durable, and may take away then."""
        # Also what is superseded: a cut of it that is not durable would leave old entries behind the snapshot's last
        # one, and if that segment came back, it would lead to the snapshot as well as the log that took their place.
        dirty = [segment for segment in (*self._superseded, *self._segments) if segment.is_dirty]
        for segment in dirty:
            segment.is_dirty = False
        superseded, self._superseded = self._superseded, []
        unused, self._unused = self._unused, []
        return Unsynced(self._disk, dirty, superseded, unused)

    def close(self) -> None:
        for segment in (*self._segments, *self._superseded):
            segment.file.close()
        for file in self._unused:
            file.close()

    def _place_of(self, index: int) -> int:
        """Which segment has this entry, or would have it next."""
        return bisect_left(self._segments, index, key=lambda segment: segment.base_index) - 1

    def _recovered(self, path: str) -> _Segment | None:
        """None if its header does not fit; then nothing in it was ever acknowledged."""
        file = self._disk.open(path)
        header = file.read_at(0, _HEADER.size)
        if len(header) == _HEADER.size:
            index, term, base_crc, crc = _HEADER.unpack(header)
            if zlib.crc32(header[:-4]) == crc and path == self._path(index, term):
                segment = _Segment(path, file, index, term, base_crc)
                segment.recover()
                return segment
        file.close()
        return None

    def _begin_segment(self, index: int, term: int, crc: int) -> _Segment:
        path = self._path(index, term)
        file = self._disk.open(path)
        header = _HEADER.pack(index, term, crc, 0)[:-4]
        file.append(header + zlib.crc32(header).to_bytes(4, "big"))
        segment = _Segment(path, file, index, term, crc)
        self._segments.append(segment)
        return segment

    def _cut(self, index: int) -> None:
        while len(self._segments) > 1 and self._segments[-1].base_index >= index:
            segment = self._segments.pop()
            self._disk.remove(segment.path)
            self._unused.append(segment.file)
        last = self._segments[-1]
        if index < last.last_index:
            last.cut(index)

    def _path(self, index: int, term: int) -> str:
        return f"{self._directory}/{index:020}-{term}"


class Unsynced:
    def __init__(self, disk: Disk, dirty: list[_Segment], superseded: list[_Segment], unused: list[File]) -> None:
        self._disk = disk
        self._dirty = dirty
        self._superseded = superseded
        self._unused = unused

    async def sync(self) -> None:
        """Raises DiskError."""
        for segment in self._dirty:
            await segment.file.fsync()

    def remove(self) -> None:
        """What nobody needs any more; the snapshot in place of it is durable."""
        for segment in self._superseded:
            self._disk.remove(segment.path)
            segment.file.close()
        for file in self._unused:
            file.close()


def _leads_to(chain: list[_Segment], index: int, term: int) -> bool:
    """Whether this entry is the base of the chain or in it. Raises DiskError."""
    holder = next((segment for segment in chain if segment.base_index <= index <= segment.last_index), None)
    return holder is not None and holder.term_of(index) == term
