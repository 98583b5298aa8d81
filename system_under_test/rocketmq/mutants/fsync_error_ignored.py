"""An fsync of the log that fails counts as one that succeeded.

The pages that failed are clean for the kernel and not on the platter; later fsyncs succeed without them. Broken rule:
after a failed fsync nothing is vouched for any more.
"""

from __future__ import annotations

from contextlib import suppress

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import DiskError, File
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.store_config import StorageParts


class HopefulLog(CommitLog):
    async def sync_file(self, file: File) -> None:
        with suppress(DiskError):
            await file.fsync()


MUTANT = Mutant(
    name="fsync-error-ignored",
    breaks="what is vouched for as durable is durable",
    parts=(BrokerParts(storage=StorageParts(commit_log=HopefulLog)),),
)
