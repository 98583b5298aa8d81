"""Where each entry stands: records of 32 bytes, at 32 times the entry's index, in files of fixed size.

Files are named by the position of their first byte; the first one may begin with a hole. All of it can be built anew
from the entries, which say what is true: a record behind the log's end means nothing.
"""

from __future__ import annotations

from system_under_test.dledger.record import INDEX_BYTES, IndexRecord, decode_index_record
from system_under_test.runtime.host import Disk, File
from system_under_test.storage.errors import RecordInvalid


class IndexFiles:
    """All files of one directory. Everything that reads or writes raises DiskError."""

    def __init__(self, disk: Disk, directory: str, file_bytes: int) -> None:
        """`file_bytes`: a multiple of 32."""
        self._disk = disk
        self._directory = directory
        self._file_bytes = file_bytes
        self._files: dict[int, File] = {}
        self._dirty: dict[int, File] = {}

    def read(self, index: int) -> IndexRecord:
        """Raises RecordInvalid where none stands, or one of another entry."""
        start, at = self._place(index)
        record = decode_index_record(self._file(start).read_at(at, INDEX_BYTES) if index >= 0 else b"")
        if record.index != index:
            raise RecordInvalid(f"at the place of entry {index} stands {record.index}")
        return record

    def write(self, index: int, records: bytes) -> None:
        """Put records from this entry's place on. Raises DiskFull; some may have been written then."""
        while records:
            start, at = self._place(index)
            piece, records = records[: self._file_bytes - at], records[self._file_bytes - at :]
            self._dirty[start] = self._file(start)
            self._dirty[start].write_at(at, piece)
            index += len(piece) // INDEX_BYTES

    def has_all(self, first: int, end: int) -> bool:
        """Whether no file is missing or too short that has a record of the entries from `first` to before `end`."""
        position = INDEX_BYTES * first
        while position < INDEX_BYTES * end:
            start = position - position % self._file_bytes
            position = min(start + self._file_bytes, INDEX_BYTES * end)
            if not self._disk.exists(self._path(start)) or self._file(start).size < position - start:
                return False
        return True

    async def sync(self) -> None:
        """Make durable what was written before the call."""
        dirty, self._dirty = self._dirty, {}
        try:
            for file in dirty.values():
                await file.fsync()
        except BaseException:
            self._dirty = dirty | self._dirty
            raise

    def keep_only(self, first: int, end: int) -> None:
        """Remove the files without a record of the entries from `first` to before `end`."""
        for path in self._disk.list(self._directory):
            start = int(path.rsplit("/", 1)[-1])
            if start + self._file_bytes <= INDEX_BYTES * first or start >= INDEX_BYTES * end:
                self._dirty.pop(start, None)
                if (file := self._files.pop(start, None)) is not None:
                    file.close()
                self._disk.remove(path)

    def _place(self, index: int) -> tuple[int, int]:
        """The first position of its file, and how far behind that its record stands."""
        position = INDEX_BYTES * index
        return position - position % self._file_bytes, position % self._file_bytes

    def _file(self, start: int) -> File:
        if start not in self._files:
            self._files[start] = self._disk.open(self._path(start))
        return self._files[start]

    def _path(self, start: int) -> str:
        return f"{self._directory}/{start:020d}"
