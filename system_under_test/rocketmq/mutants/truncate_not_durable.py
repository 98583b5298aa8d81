"""A cut of the log moves its end in memory; in the file what was cut stays until other bytes are written over it.

A process that starts again finds whole messages behind the cut, each at the offset that it names, and takes them for
the log's. The epoch file was cut for good, so they count as bytes of an epoch that the master has. Broken rule: what
is cut is gone before the first ack.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import File
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.store_config import StorageParts


class ForgivingLog(CommitLog):
    def cut_file(self, file: File, size: int) -> None:
        if size == 0:
            super().cut_file(file, size)


MUTANT = Mutant(
    name="truncate-not-durable",
    breaks="replicas hold the same bytes at the same offset",
    parts=(BrokerParts(storage=StorageParts(commit_log=ForgivingLog)),),
)
