"""What a member has to know after a restart beside its log: its term and vote, and from where its files are to be read.

Each is a small record that is replaced whole. A harmed one is an error: a member without its vote might vote twice.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from system_under_test.dledger.entry import NOTHING
from system_under_test.runtime.host import Disk, DiskError
from system_under_test.storage.errors import StorageCorrupt, StorageFailed
from system_under_test.storage.record_file import RecordFile

_TERM = struct.Struct(">q")
_CHECKPOINT = struct.Struct(">qqIqq")


class Beginning(NamedTuple):
    """Where a log begins in its files."""

    times: int = 0
    """How often the log had begun anew; each time it has other files."""
    position: int = 0
    chain: int = 0
    """The chain's CRC of the entry before, which has expired; 0 if there never was one."""


class Checkpoint(NamedTuple):
    beginning: Beginning = Beginning()
    end: int = NOTHING
    """The last index that was durable; not NOTHING says that there have been entries in these files."""
    committed: int = NOTHING
    """All up to it are durable as well, and never overwritten."""


class VoteFile:
    """(term, vote), durably."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)

    async def read(self) -> tuple[int, str | None]:
        """(0, None) if none was ever written. Raises StorageCorrupt, StorageFailed."""
        data = _read(self._record)
        if data is None:
            return 0, None
        try:
            return _TERM.unpack_from(data)[0], data[_TERM.size :].decode() or None
        except (struct.error, UnicodeDecodeError) as error:
            raise StorageCorrupt(f"term and vote: {error}") from error

    async def write(self, term: int, vote: str | None) -> None:
        """Durable on return. Raises DiskFull, StorageFailed."""
        await self._record.write(_TERM.pack(term) + (vote or "").encode())


class CheckpointFile:
    """The newest checkpoint, durably."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)

    async def read(self) -> Checkpoint:
        """That of an empty log if none was ever written. Raises StorageCorrupt, StorageFailed."""
        data = _read(self._record)
        if data is None:
            return Checkpoint()
        try:
            *beginning, end, committed = _CHECKPOINT.unpack(data)
        except struct.error as error:
            raise StorageCorrupt(f"checkpoint: {error}") from error
        return Checkpoint(Beginning(*beginning), end, committed)

    async def write(self, checkpoint: Checkpoint) -> None:
        """Durable on return. Raises DiskFull, StorageFailed."""
        await self._record.write(_CHECKPOINT.pack(*checkpoint.beginning, checkpoint.end, checkpoint.committed))


def _read(record: RecordFile) -> bytes | None:
    try:
        return record.read()
    except DiskError as error:
        raise StorageFailed(f"reading: {error}") from error
