"""A bookie's journal: one file after the other, each named by the 20 digits of the position at which it begins.

Records are chained over the files. Claims: `replay` gives all records that were ever durable and not let go, in order,
and maybe some more that were written behind them. A record that is harmed ends the journal there, if nothing behind it
claims that it was durable; otherwise StorageCorrupt names file and offset. Rot in the last records, behind which
nothing claims anything, cannot be told from a torn tail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from system_under_test.bookkeeper.bookie.journal_record import (
    Kind,
    Record,
    decode_record,
    encode_record,
    greatest_claim,
)
from system_under_test.runtime.host import Disk, DiskError, File
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt, StorageFailed


@dataclass(frozen=True, slots=True)
class Place:
    """Between two records: where, and the checksum of the one before."""

    position: int = 0
    chain: int = 0


@dataclass(slots=True, eq=False)
class _JournalFile:
    start: int
    path: str
    file: File
    size: int = 0


class Journal:
    """A `Log` of the flushers. `replay` comes first, once through, then `begin`."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._end = Place()
        self._files: list[_JournalFile] = []
        self._dirty: list[_JournalFile] = []
        """Those with bytes, or a name, that are not durable; oldest first."""
        self._fsyncs = asyncio.Lock()
        self.failed = False
        """The device failed under a write or an fsync; nothing is accepted or vouched for any more."""
        self.flushed_offset = 0
        """Everything before it survives a loss of power."""

    @property
    def max_offset(self) -> int:
        return self._end.position

    @property
    def end(self) -> Place:
        return self._end

    # reading

    def replay(self, start: Place, *, is_required: bool) -> Iterator[Record]:
        """Records from `start` on. `is_required`: a file that begins there was durable. Raises StorageCorrupt,
        StorageFailed."""
        self._end = start
        starts = self._starts(start.position)
        if is_required and start.position not in starts:
            raise StorageCorrupt(
                f"{self._path(start.position)}, with which the journal begins, is gone: bring the file back, or wipe "
                "this bookie and let it come back empty"
            )
        for number, file_start in enumerate(starts):
            data = self._read(file_start)
            if file_start == self._end.position:
                yield from self._records(data, file_start)
            if file_start + len(data) != self._end.position:
                self._require_torn_tail(data, file_start, starts[number + 1 :])
                return

    def _records(self, data: bytes, file_start: int) -> Iterator[Record]:
        """Up to the first one that is harmed, or does not follow the one before it."""
        at = 0
        while at < len(data):
            try:
                record = decode_record(data, at, file_start + at)
            except RecordInvalid:
                return
            if record.before != self._end.chain:
                return
            at += record.size
            self._end = Place(file_start + at, record.checksum)
            yield record

    def _require_torn_tail(self, data: bytes, file_start: int, later: list[int]) -> None:
        end = self._end.position
        offset = max(0, end - file_start)
        claims = [greatest_claim(data, offset, file_start)]
        claims += [greatest_claim(self._read(start), 0, start) for start in later]
        if max(claims) > end:
            path = self._path(max(start for start in [*self._starts(0), 0] if start <= end))
            raise StorageCorrupt(
                f"{path} is harmed at offset {end - int(path[-20:])}, and what is written behind it says that it was "
                "durable: bring the file back, or wipe this bookie and let it come back empty"
            )

    def _starts(self, least: int) -> list[int]:
        names = (path.rsplit("/", 1)[-1] for path in self._disk.list(self._directory))
        return sorted(int(name) for name in names if name.isdigit() and int(name) >= least)

    def _read(self, start: int) -> bytes:
        file = self._disk.open(self._path(start))
        try:
            return file.read_at(0, file.size)
        except DiskError as error:
            raise StorageFailed(f"{self._path(start)}: {error}") from error
        finally:
            file.close()

    def _path(self, start: int) -> str:
        return f"{self._directory}/{start:020d}"

    # writing

    def begin(self) -> None:
        """Go on at the end that was found, in an empty file of its own. What stood behind it is gone."""
        for start in self._starts(self._end.position):
            self._disk.remove(self._path(start))
        self._files = [_JournalFile(start, self._path(start), self._open(start)) for start in self._starts(0)]
        self._dirty.clear()
        self.flushed_offset = self._end.position
        self.roll()

    def _open(self, start: int) -> File:
        return self._disk.open(self._path(start))

    def roll(self) -> Place:
        """Begin a new file, of which the name is durable after the next flush. Raises DiskFull."""
        start = self._end.position
        if self._files and self._files[-1].start == start:
            return self._end
        file = _JournalFile(start, self._path(start), self._open(start))
        # A file that was removed may have come back with a loss of power.
        file.file.truncate(0)
        self._files.append(file)
        self._dirty.append(file)
        return self._end

    def append(self, kind: Kind, body: bytes) -> int:
        """Returns the journal's new end. Raises DiskFull (nothing is written), StorageFailed."""
        if self.failed:
            raise StorageFailed("the device failed before")
        file = self._files[-1]
        position = self._end.position
        data, checksum = encode_record(kind, body, position, self.flushed_offset, self._end.chain)
        try:
            file.file.write_at(file.size, data)
        except DiskError as error:
            self.failed = True
            raise StorageFailed(f"{file.path}: {error}") from error
        file.size += len(data)
        self._end = Place(position + len(data), checksum)
        if not self._dirty or self._dirty[-1] is not file:
            self._dirty.append(file)
        return self._end.position

    @property
    def bytes_in_file(self) -> int:
        """Of the newest file."""
        return self._end.position - self._files[-1].start

    # durability

    async def flush(self) -> int:
        """Make everything written before the call durable; returns the flushed offset. Raises StorageFailed, for good:
        the pages that failed may be gone though a later fsync succeeds."""
        async with self._fsyncs:
            if self.failed:
                raise StorageFailed("the device failed before")
            end, dirty = self._end.position, list(self._dirty)
            for file in dirty:
                size = file.size
                try:
                    await file.file.fsync()
                except DiskError as error:
                    self.failed = True
                    raise StorageFailed(f"{file.path}: {error}") from error
                if file.size == size:
                    self._dirty.remove(file)
            self.flushed_offset = end
            return end

    def remove_before(self, position: int) -> None:
        """Let the files go that end there or before."""
        while self._files and self._files[0].start < position:
            file = self._files.pop(0)
            file.file.close()
            self._disk.remove(file.path)
