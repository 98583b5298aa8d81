"""Entry logs, shared by all ledgers: files in which entries stand one behind the other, in the order of their coming.

    entries/NUMBER         size:4, then the entry, and so on
    entries/NUMBER.index   where which entry stands, once the log is full

A checkpoint makes the newest log durable together with its index, and begins another one. What stands in a log behind
the newest checkpoint is written again from the journal at a start. An entry is found by its index even where the log is
harmed, so that it is known to be harmed, and not taken for absent; where the index is harmed it is made again of the
log, of which all must be whole then.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator

from system_under_test.bookkeeper.bookie.index import (
    IndexRecord,
    Location,
    decode_index,
    encode_index_record,
)
from system_under_test.bookkeeper.entry import Digest, EntryCorrupt, decode_entry, ids_of
from system_under_test.runtime.host import Disk, DiskError, File
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt, StorageFailed
from system_under_test.storage.record_file import RecordFile

_SIZE = struct.Struct(">I")
SIZE_BYTES = _SIZE.size
MAX_OPEN = 16
"""So many full logs are kept open for reading."""


def scan(data: bytes, digest: Digest) -> Iterator[IndexRecord]:
    """The index of a log with these bytes. Raises RecordInvalid, with the offset, at the first entry that is harmed."""
    at = 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at) if at + SIZE_BYTES <= len(data) else (0,)
        entry = data[at + SIZE_BYTES : at + SIZE_BYTES + size]
        try:
            ledger, number = ids_of(entry)
            if len(entry) != size:
                raise EntryCorrupt("it is cut")
            decode_entry(entry, digest, ledger, number)
        except EntryCorrupt as error:
            raise RecordInvalid(f"offset {at}: {error}") from error
        yield IndexRecord(ledger, number, at + SIZE_BYTES, size)
        at += SIZE_BYTES + size


class EntryLogs:
    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._open: OrderedDict[int, File] = OrderedDict()
        """Full logs, the one read last at the end."""
        self._newest = 0
        self._file: File | None = None
        self._size = 0
        self._records = bytearray()
        """The index of the newest log."""
        self._ending: tuple[int, File, bytes] | None = None
        """The log that is being made durable, and its index."""

    @property
    def newest(self) -> int:
        return self._newest

    @property
    def size(self) -> int:
        """Of the newest log, in bytes."""
        return self._size

    # at a start

    def begin(self, number: int) -> None:
        """Let log `number` be the newest one, and empty; those before it are full."""
        for path in self._disk.list(self._directory):
            name = path.rsplit("/", 1)[-1].split(".")[0]
            if name.isdigit() and int(name) > number:
                self._disk.remove(path)
        self._newest = number
        self._start_file()

    def _start_file(self) -> None:
        self._file = self._disk.open(self._path(self._newest))
        self._file.truncate(0)
        self._size = 0
        self._records = bytearray()

    async def load(self, number: int, digest: Digest) -> Iterator[IndexRecord]:
        """The index of a full log. Raises StorageCorrupt, StorageFailed, DiskFull."""
        try:
            kept = RecordFile(self._disk, self._index_path(number)).read()
            if kept is not None:
                return decode_index(kept)
        except (StorageCorrupt, RecordInvalid):
            return await self._rebuild(number, digest)
        except DiskError as error:
            raise StorageFailed(f"{self._index_path(number)}: {error}") from error
        return await self._rebuild(number, digest)

    async def _rebuild(self, number: int, digest: Digest) -> Iterator[IndexRecord]:
        path = self._path(number)
        if not self._disk.exists(path):
            raise StorageCorrupt(f"{path} is gone, and so is its index: bring them back, or wipe this bookie")
        file = self._disk.open(path)
        try:
            records = list(scan(file.read_at(0, file.size), digest))
        except RecordInvalid as error:
            raise StorageCorrupt(
                f"{path} is harmed at {error}; and so is its index, so what is missing is not known: bring one of them "
                "back, or wipe this bookie"
            ) from error
        except DiskError as error:
            raise StorageFailed(f"{path}: {error}") from error
        finally:
            file.close()
        await RecordFile(self._disk, self._index_path(number)).write(b"".join(map(encode_index_record, records)))
        return iter(records)

    # writing

    def append(self, data: bytes) -> Location:
        """It is part of the log once `keep` follows. Raises DiskFull, StorageFailed."""
        assert self._file is not None, "logs are begun first"
        try:
            self._file.write_at(self._size, _SIZE.pack(len(data)) + data)
        except DiskError as error:
            raise StorageFailed(f"{self._path(self._newest)}: {error}") from error
        return Location(self._newest, self._size + SIZE_BYTES, len(data))

    def keep(self, ledger: int, entry: int, location: Location) -> None:
        """What was appended last."""
        self._size += SIZE_BYTES + location.size
        self._records += encode_index_record(IndexRecord(ledger, entry, location.offset, location.size))

    def roll(self) -> None:
        """End the newest log, and begin another. Raises DiskFull, with nothing changed."""
        assert self._file is not None
        assert self._ending is None, "one log is ended at a time"
        following = self._disk.open(self._path(self._newest + 1))
        following.close()
        self._ending = self._newest, self._file, bytes(self._records)
        self._newest += 1
        self._start_file()

    async def finish(self) -> None:
        """Make the log that was ended, if there is one, durable with its index. Raises StorageFailed, DiskFull: then it
        may be tried again."""
        if self._ending is None:
            return
        number, file, records = self._ending
        try:
            await file.fsync()
        except DiskError as error:
            raise StorageFailed(f"{self._path(number)}: {error}") from error
        await RecordFile(self._disk, self._index_path(number)).write(records)
        self._ending = None
        self._opened(number, file)

    # reading

    def read(self, location: Location) -> bytes:
        """Raises DiskError. What is not there is missing at the end."""
        return self._reading(location.log).read_at(location.offset, location.size)

    def _reading(self, number: int) -> File:
        if number == self._newest and self._file is not None:
            return self._file
        if self._ending is not None and self._ending[0] == number:
            return self._ending[1]
        file = self._open.get(number)
        if file is None:
            file = self._disk.open(self._path(number))
            self._opened(number, file)
        self._open.move_to_end(number)
        return file

    def _opened(self, number: int, file: File) -> None:
        self._open[number] = file
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)[1].close()

    def close(self) -> None:
        ending = [] if self._ending is None else [self._ending[1]]
        for file in [*self._open.values(), *ending, *([] if self._file is None else [self._file])]:
            file.close()
        self._open.clear()

    def _path(self, number: int) -> str:
        return f"{self._directory}/{number:010d}"

    def _index_path(self, number: int) -> str:
        return f"{self._path(number)}.index"
