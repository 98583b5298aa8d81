"""The commit log: one dense sequence of bytes in segment files of fixed size, named by their 20-digit start offset.
What its records are like, `RecordFormat` says.

A segment that cannot take the next record is filled with a blank (header, then zeros), so that every segment but the
last is exactly `segment_bytes` long and replicas, which receive raw bytes, have the same segments. Replicated bytes may
be cut anywhere; the tail may hold half a record until the rest arrives, and `max_offset` counts bytes.

Recovery claims: what it leaves is a dense sequence of whole, unharmed records and blanks that contains everything
flushed; the first byte that is not part of one ends the log, and the cut is durable before anything is appended.

Segment sizes have to be the same on all replicas of a group, and at least a largest record plus the blank's header.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from zlib import crc32

from system_under_test.runtime.host import Disk, DiskError, DiskFull, File
from system_under_test.runtime.rewrite import write_again
from system_under_test.storage.errors import BadOffset, MessageTooLarge, RecordInvalid, StorageCorrupt, StorageFailed
from system_under_test.storage.log_digest import LogDigest
from system_under_test.storage.record_format import BLANK_BYTES, RecordFormat

_SCAN_BYTES = 1 << 16
_NOTE = struct.Struct(">Iq")


@dataclass(slots=True, kw_only=True)
class _Segment:
    start: int
    size: int
    file: File
    path: str


class CommitLog:
    """Segments of one store; `load` and then `recover` come before anything else."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        segment_bytes: int,
        record_format: RecordFormat,
        digest: LogDigest | None = None,
    ) -> None:
        """`digest` goes along with what is put in by `append` and `append_raw`."""
        self._disk = disk
        self._format = record_format
        self._digest = digest
        self._directory = directory
        self.segment_bytes = segment_bytes
        self._segments: list[_Segment] = []
        self._note_path = f"{directory}.beginning"
        self._note_file: File | None = None
        self._boundary = 0
        self._fsyncs = asyncio.Lock()
        self.failed = False
        """The device failed under a write or an fsync; nothing is accepted or vouched for any more."""
        self.beginnings = 0
        """How often the log began anew; what a checkpoint says is true of the same beginning only."""
        self.min_offset = 0
        self.max_offset = 0
        self.flushed_offset = 0
        """Everything before it survives a loss of power."""
        self._flushing_to = 0
        self._cut_files: list[File] = []
        """Those whose cut is not durable yet."""

    @property
    def start_of_last_file(self) -> int:
        return self._segments[-1].start if self._segments else self.max_offset

    # writing

    def fits(self, size: int) -> bool:
        """Whether a segment can hold a record of `size` bytes."""
        return size + BLANK_BYTES <= self.segment_bytes

    def reserve(self, size: int) -> int:
        """The offset at which a record of `size` bytes will stand; fills the segment with a blank if it must.

        Raises MessageTooLarge, DiskFull, StorageFailed. The log must end at a record boundary.
        """
        if not self.fits(size):
            raise MessageTooLarge(f"{size} bytes do not fit into a segment of {self.segment_bytes}")
        room = self.segment_bytes - self.max_offset % self.segment_bytes
        if size + BLANK_BYTES > room:
            self._append_within_segment(self._format.encode_blank(room))
        return self.max_offset

    def append(self, record: bytes) -> int:
        """Append a record, or all of a batch, encoded for the offset that `reserve` gave; returns the log's new end.

        Raises DiskFull (nothing was written), StorageFailed.
        """
        self._append_within_segment(record)
        self._boundary = self.max_offset
        return self.max_offset

    def append_raw(self, offset: int, data: bytes) -> None:
        """Append bytes as the master sent them.

        Raises BadOffset unless `offset` is the log's end, DiskFull, StorageFailed. After DiskFull a part may be
        written; the log's end tells.
        """
        if offset != self.max_offset:
            raise BadOffset(f"bytes for {offset}, the log ends at {self.max_offset}")
        position = 0
        while position < len(data):
            room = self.segment_bytes - self.max_offset % self.segment_bytes
            piece = data if position == 0 and len(data) <= room else data[position : position + room]
            self._append_within_segment(piece)
            position += len(piece)

    def check_beginning(self, offset: int) -> None:
        """Raises BadOffset unless the log is empty and may begin there: at a segment's start."""
        if self.max_offset != self.min_offset or offset % self.segment_bytes:
            raise BadOffset(f"the log, {self.min_offset} to {self.max_offset}, cannot begin anew at {offset}")

    def begin_at(self, offset: int) -> None:
        """Let the log, which is empty, begin anew at a segment's start. Raises BadOffset where it cannot."""
        self.check_beginning(offset)
        self.drop_segments()
        self._write_beginning(offset)
        self.min_offset = self.max_offset = self._boundary = self.flushed_offset = offset
        self._start_digest()

    def _start_digest(self) -> None:
        if self._digest is not None:
            self._digest.start_at(self.max_offset, self.read)

    def _append_within_segment(self, data: bytes) -> None:
        if self.failed:
            raise StorageFailed("the device failed before")
        if not self._segments or self._segments[-1].size == self.segment_bytes:
            self._segments.append(self._open_segment(self.max_offset))
        segment = self._segments[-1]
        try:
            segment.file.write_at(segment.size, data)
        except DiskError as error:
            self.failed = True
            raise StorageFailed(f"{segment.path}: {error}") from error
        segment.size += len(data)
        if self._digest is not None:
            self._digest.appended(self.max_offset, data)
        self.max_offset += len(data)

    def _open_segment(self, start: int) -> _Segment:
        path = f"{self._directory}/{start:020d}"
        file = self._disk.open(path)
        return _Segment(start=start, size=file.size, file=file, path=path)

    def _write_beginning(self, offset: int) -> None:
        """Note that the log begins anew, here; fsynced before the bytes that follow, not needed if those are lost."""
        self.beginnings += 1
        self._note_file = self._disk.open(self._note_path)
        note = _NOTE.pack(self.beginnings, offset)
        self._note_file.write_at(0, note + crc32(note).to_bytes(4, "big"))

    def _read_beginning(self) -> tuple[int, int] | None:
        """How often the log began anew, and where at last; None if the note is torn, so that nothing is durable yet."""
        if not self._disk.exists(self._note_path):
            return 0, 0
        file = self._disk.open(self._note_path)
        data = file.read_at(0, _NOTE.size + 4)
        file.close()
        note = data[: _NOTE.size]
        if data[_NOTE.size :] != crc32(note).to_bytes(4, "big"):
            return None
        number, offset = _NOTE.unpack(note)
        return number, offset

    def drop_segments(self) -> None:
        """Remove all files of a log that is empty, or that nobody reads any more."""
        for segment in self._segments:
            segment.file.close()
            self._disk.remove(segment.path)
        self._segments.clear()

    # durability

    async def flush(self) -> int:
        """Make everything written before the call durable; returns the flushed offset. Raises StorageFailed.

        One at a time; a failure is final, for the pages that failed may be gone though a later fsync succeeds.
        """
        async with self._fsyncs:
            return await self._flush()

    async def _flush(self) -> int:
        if self.failed:
            raise StorageFailed("the device failed before")
        self._flushing_to = self.max_offset
        dirty = [segment for segment in self._segments if segment.start + segment.size > self.flushed_offset]
        await self._sync_cut_files()
        if dirty:
            if self._note_file is not None:
                await self.sync_file(self._note_file)
                self._note_file = None
            for segment in dirty:
                await self.sync_file(segment.file)
        self.flushed_offset = max(self.flushed_offset, self._flushing_to)
        return self.flushed_offset

    async def _sync_cut_files(self) -> None:
        for file in tuple(self._cut_files):
            self._cut_files.remove(file)
            try:
                await self.sync_file(file)
            except BaseException:
                self._cut_files.append(file)
                raise
            if file not in [*self._cut_files, *(segment.file for segment in self._segments)]:
                file.close()

    async def sync_file(self, file: File) -> None:
        """Make a file of the log durable. Raises StorageFailed, for good."""
        try:
            await file.fsync()
        except DiskError as error:
            self.failed = True
            raise StorageFailed(f"commit log: {error}") from error

    def end_after_cut(self, offset: int) -> int:
        """Where the log ends when it is cut at `offset`: there, or, before its first byte, at that segment's start."""
        return offset if offset >= self.min_offset else offset - offset % self.segment_bytes

    async def truncate(self, offset: int, boundary: int) -> None:
        """Cut the log at `offset`, durably; what is left is durable as well. Later segments go first, so that a crash
        in between leaves a longer prefix, never a hole. `boundary` is a record boundary at or before `offset`, from
        where the last one is sought. Raises StorageFailed.
        """
        async with self._fsyncs:
            for segment in self._cut_segments(offset, boundary):
                # A removal alone may be undone by a loss of power: the file must come back empty.
                await self.sync_file(segment.file)
                if segment.size == 0 and segment.start != self.min_offset:
                    segment.file.close()
                    self._disk.remove(segment.path)
            self._start_digest()
            await self._flush()

    def cut(self, offset: int) -> None:
        """Cut the log at a record boundary; durable after the next flush. Later files stay, empty, for the log to grow
        into. Before that flush a loss of power may undo the cut of each file, also where other bytes were written
        behind it and are lost in part: records themselves have to say then what they follow."""
        for segment in self._cut_segments(offset, offset):
            if segment.file not in self._cut_files:
                self._cut_files.append(segment.file)

    def append_all(self, data: bytes) -> None:
        """Append whole records and blanks, over as many files as they need. Raises DiskFull (nothing was changed),
        StorageFailed.

        Later files are written before earlier ones: where one finds no room, only files behind the log's end have
        changed.
        """
        if self.failed:
            raise StorageFailed("the device failed before")
        offset, end = self.max_offset, self.max_offset + len(data)
        fresh: list[_Segment] = []
        starts = [offset, *range(offset - offset % self.segment_bytes + self.segment_bytes, end, self.segment_bytes)]
        try:
            for start, piece_end in reversed([*zip(starts, [*starts[1:], end], strict=True)]):
                if start == offset and self._segments and self._segments[-1].size < self.segment_bytes:
                    segment = self._segments[-1]
                else:
                    segment = self._open_segment(start)
                    fresh.append(segment)
                segment.file.write_at(start - segment.start, data[start - offset : piece_end - offset])
                segment.size = piece_end - segment.start
        except DiskFull:
            for segment in fresh:
                segment.file.truncate(0)
                segment.file.close()
            raise
        except DiskError as error:
            self.failed = True
            raise StorageFailed(f"commit log: {error}") from error
        self._segments += reversed(fresh)
        self.max_offset = self._boundary = end

    def _cut_segments(self, offset: int, boundary: int) -> Iterator[_Segment]:
        """Cut the log, the last segment first; before the next one goes, its caller can make that durable."""
        if self._boundary > offset:
            self._boundary = boundary
        while self._segments and self._segments[-1].start + self._segments[-1].size > offset:
            segment = self._segments[-1]
            kept = max(0, offset - segment.start)
            self.cut_file(segment.file, kept)
            segment.size = kept
            self.max_offset = segment.start + kept
            yield segment
            if kept or segment.start == self.min_offset:
                break
            self._segments.pop()
        if offset < self.min_offset:
            self.drop_segments()
            self.min_offset = self.max_offset = self._boundary = self.end_after_cut(offset)
        self.flushed_offset = min(self.flushed_offset, self.max_offset)
        self._flushing_to = min(self._flushing_to, self.max_offset)

    def cut_file(self, file: File, size: int) -> None:
        """What is left of a segment's file when the log is cut in it; durable after the next fsync."""
        file.truncate(size)

    def delete_segments_before(self, offset: int) -> None:
        """Drop the first segments that end at `offset` or before; never the last one."""
        while len(self._segments) > 1 and self._segments[1].start <= offset:
            segment = self._segments.pop(0)
            segment.file.close()
            self._disk.remove(segment.path)
            self.min_offset = self._segments[0].start
        # Every file begins with a record.
        self._boundary = max(self._boundary, self.min_offset)

    def segment_starts(self) -> tuple[int, ...]:
        return tuple(segment.start for segment in self._segments)

    # reading

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` on, ending at the latest where its segment or the log ends."""
        if not self.min_offset <= offset < self.max_offset:
            return b""
        segment = self._segments[(offset - self._segments[0].start) // self.segment_bytes]
        return segment.file.read_at(offset - segment.start, min(length, segment.start + segment.size - offset))

    def records(self, start: int, end: int) -> Iterator[tuple[bytes, int]]:
        """(bytes, position in them) of the records within [start, end) of which no batch is cut, in order; `start` is a
        boundary.

        Raises StorageCorrupt where neither a record nor a blank starts; such bytes never came from a master.
        """
        begun: list[tuple[bytes, int]] = []
        for data, position, _, _ in self._walk(start, end):
            if not data:
                continue
            if self._format.goes_on(data, position):
                begun.append((data, position))
                continue
            if begun:
                yield from begun
                begun.clear()
            yield data, position

    def goes_on(self, offset: int) -> bool:
        """Whether the record that stands here is not the last of its batch."""
        return self._format.goes_on(self.read(offset, self._format.head_bytes), 0)

    def _walk(self, start: int, end: int) -> Iterator[tuple[bytes, int, int, int]]:
        """(data, position in it, offset, size) of each record within [start, end); a blank comes without data."""
        offset = start
        wanted = _SCAN_BYTES
        while offset < end:
            data = self.read(offset, min(wanted, end - offset))
            if not data:
                raise StorageCorrupt(f"the log has no byte at {offset}, though it should reach to {end}")
            position = 0
            while position < len(data):
                size = self._size_at(data, position, offset + position)
                if offset + position + size > end:
                    return
                is_record = self._format.size(data, position) != 0
                if is_record and position + size > len(data):
                    wanted = max(_SCAN_BYTES, size)
                    break
                yield data if is_record else b"", position, offset + position, size
                position += size
            offset += position

    def _size_at(self, data: bytes, position: int, offset: int) -> int:
        """The size of the record or blank that starts here; too few bytes to tell count as a whole header."""
        room = self.segment_bytes - offset % self.segment_bytes
        size = self._format.size(data, position)
        if size < 0:
            size = BLANK_BYTES
        elif size == 0:
            size = self._format.blank_size(data, position)
            if size != room:
                raise StorageCorrupt(f"no message starts at {offset}")
        if size > room:
            raise StorageCorrupt(f"the message at {offset} does not fit into its segment")
        return size

    def last_message_boundary(self) -> int:
        """The end of the last whole record, batch or blank."""
        end = self._boundary
        while end < self.max_offset:
            head = self.read(end, self._format.head_bytes)
            size = self._size_at(head, 0, end)
            if end + size > self.max_offset:
                break
            end += size
            if not self._format.goes_on(head, 0):
                self._boundary = end
        return self._boundary

    # recovery

    def load(self, checkpoint: tuple[int, int] | None) -> None:
        """Open the segments. `checkpoint`: how often the log had begun anew, and its least offset, when a checkpoint
        was last written; None: there is no checkpoint, and whatever is there is taken for the log.

        The first segment has to be the one that is expected: with a loss of power it may go while a later one stays,
        or one that was deleted may come back.
        """
        starts = [int(path.rsplit("/", 1)[-1]) for path in self._disk.list(self._directory)]
        beginning = self._read_beginning()
        if beginning is None:
            self.beginnings = 0 if checkpoint is None else checkpoint[0]
            self._write_beginning(0)
            return
        self.beginnings, self.min_offset = beginning
        if checkpoint is None:
            self.min_offset = min(starts, default=0)
        elif checkpoint[0] == self.beginnings:
            self.min_offset = checkpoint[1]
        self._boundary = self.max_offset = self.min_offset
        while self.max_offset in starts:
            self._segments.append(self._open_segment(self.max_offset))
            self.max_offset += self._segments[-1].size
            if self._segments[-1].size < self.segment_bytes:
                break

    async def recover(self, checked_offset: int) -> None:
        """Check all records from `checked_offset` on (from the start, if the log has no such place), cut the log
        durably at the first byte that belongs to no whole, unharmed record or batch, and make the rest durable.
        """
        if not self.min_offset <= checked_offset <= self.max_offset:
            checked_offset = self.min_offset
        whole_end = self._end_of_unharmed(checked_offset)
        # What a killed process wrote can be read, and is not yet durable.
        self.flushed_offset = checked_offset
        if self._note_file is None and self._disk.exists(self._note_path):
            self._note_file = self._disk.open(self._note_path)
        await self._remove_strays()
        self._write_again(checked_offset, whole_end)
        await self.truncate(self.recovered_end(whole_end), whole_end)
        self._boundary = whole_end

    def _write_again(self, start: int, end: int) -> None:
        """What was found between these offsets, and the note: an fsync of theirs may have failed."""
        try:
            if self._note_file is not None:
                write_again(self._note_file, 0, self._note_file.size)
            for segment in self._segments:
                write_again(segment.file, max(0, start - segment.start), min(segment.size, end - segment.start))
        except DiskError as error:
            self.failed = True
            raise StorageFailed(f"commit log: {error}") from error

    def recovered_end(self, whole_end: int) -> int:
        """Where recovery cuts the log, whose last whole, unharmed record or batch ends at `whole_end`."""
        return whole_end

    async def _remove_strays(self) -> None:
        """Empty segments that are no part of the log, durably, before the log can grow to them."""
        known = {segment.path for segment in self._segments}
        for path in self._disk.list(self._directory):
            if path not in known:
                file = self._disk.open(path)
                file.truncate(0)
                await self.sync_file(file)
                file.close()
                self._disk.remove(path)

    def _end_of_unharmed(self, start: int) -> int:
        end = start
        # What is not a record was not written to its end; everything flushed lies before it.
        with suppress(StorageCorrupt, RecordInvalid):
            for data, position, offset, size in self._walk(start, self.max_offset):
                if data:
                    self._format.check(data, position, offset)
                elif self.read(offset, size) != self._format.encode_blank(size):
                    break
                if not (data and self._format.goes_on(data, position)):
                    end = offset + size
        return end
