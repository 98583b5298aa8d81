"""Epochs of files that were deleted stay in the epoch file, and the first start does not move up.

A slave that ends in one of these files finds a point in common with a master that has nothing there any more, asks to
go on from it, is turned away, and tries again for ever. Broken rule: the epoch file speaks of bytes that the log has.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.epoch_file import EpochFile
from system_under_test.storage.store_config import StorageParts


class EpochsOfDeletedFiles(EpochFile):
    async def delete_prefix(self, min_offset: int) -> None:
        """Leave them where they are."""


MUTANT = Mutant(
    name="stale-epochs-kept",
    breaks="a slave catches up with its master",
    parts=(BrokerParts(storage=StorageParts(epoch_file=EpochsOfDeletedFiles)),),
)
