"""The epoch file is written and not fsynced.

A loss of power may bring back the version before, which is whole: the log has bytes of an epoch that the file does not
name, and they count as those of the epoch before. Broken rule: an epoch is durable before its first byte.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import Disk
from system_under_test.storage.epoch_file import EpochFile
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile, framed
from system_under_test.storage.store_config import StorageParts


class UnsyncedRecord(RecordFile):
    """The newest record is in the page cache only; durable is the one before it, and the very first."""

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__(disk, path)
        self._unsynced = disk
        self._newest_path = f"{path}.newest"
        self._newest = RecordFile(disk, self._newest_path)

    def read(self) -> bytes | None:
        try:
            newest = self._newest.read()
        except StorageCorrupt:
            newest = None
        return super().read() if newest is None else newest

    async def write(self, record: bytes) -> None:
        before = self.read()
        await super().write(record if before is None else before)
        file = self._unsynced.open(self._newest_path)
        file.truncate(0)
        file.append(framed(record))
        file.close()


def _epoch_file(disk: Disk, path: str) -> EpochFile:
    return EpochFile(disk, path, UnsyncedRecord)


MUTANT = Mutant(
    name="epoch-not-durable",
    breaks="replicas hold the same bytes at the same offset",
    parts=(BrokerParts(storage=StorageParts(epoch_file=_epoch_file)),),
)
