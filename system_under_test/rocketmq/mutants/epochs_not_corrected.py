"""Entries of the epoch file that start beyond the log's end stay.

A master whose log ends before its newest entry starts cannot note that its own epoch starts earlier, so it notes it
there; what it writes up to there counts as written under an older epoch. Broken rule: the epoch file says of no byte
that another master wrote it.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.epoch_file import EpochFile
from system_under_test.storage.store_config import StorageParts


class UncorrectedEpochs(EpochFile):
    async def truncate_suffix(self, end_offset: int) -> None:
        """Leave them where they are."""

    async def append(self, master_epoch: int, start_offset: int) -> None:
        newest = self.map.last
        await super().append(master_epoch, start_offset if newest is None else max(start_offset, newest.start_offset))


MUTANT = Mutant(
    name="epochs-not-corrected",
    breaks="equal epochs with equal starts mean equal bytes on all replicas",
    parts=(BrokerParts(storage=StorageParts(epoch_file=UncorrectedEpochs)),),
)
