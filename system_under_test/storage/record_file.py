"""A small record on disk that is replaced whole, or not at all, and never believed when harmed.

The record is written beside the old one, fsynced, and renamed over it; length and CRC tell a harmed one.
"""

from __future__ import annotations

import asyncio
import struct
from zlib import crc32

from system_under_test.runtime.host import Disk, DiskError
from system_under_test.storage.errors import StorageCorrupt, StorageFailed

_FRAME = struct.Struct(">II")


def framed(record: bytes) -> bytes:
    """As it stands in a file."""
    return _FRAME.pack(len(record), crc32(record)) + record


class RecordFile:
    """One record under one path."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._lock = asyncio.Lock()

    def read(self) -> bytes | None:
        """The record, or None if there never was one. Raises StorageCorrupt if it is harmed."""
        if not self._disk.exists(self._path):
            return None
        file = self._disk.open(self._path)
        try:
            data = file.read_at(0, file.size)
        finally:
            file.close()
        if len(data) < _FRAME.size:
            raise StorageCorrupt(f"{self._path} is cut")
        length, crc = _FRAME.unpack_from(data)
        record = data[_FRAME.size :]
        if len(record) != length or crc32(record) != crc:
            raise StorageCorrupt(f"{self._path} is harmed")
        return record

    async def write(self, record: bytes) -> None:
        """Replace the record; durable on return. Raises StorageFailed."""
        async with self._lock:
            try:
                file = self._disk.open(self._path + ".new")
                try:
                    file.truncate(0)
                    file.append(framed(record))
                    await file.fsync()
                finally:
                    file.close()
                await self._disk.replace(self._path + ".new", self._path)
            except DiskError as error:
                raise StorageFailed(f"{self._path}: {error}") from error
