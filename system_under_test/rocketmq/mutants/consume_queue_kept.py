"""A cut of the log leaves the consume queues as they are.

Entries of messages that were cut stay and point at whatever is written at those offsets later; the entries of the
messages that come in their place are taken for known ones. Broken rule: consume queues are cut with the log.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.consume_queue import ConsumeQueue
from system_under_test.storage.store_config import StorageParts


class KeptQueue(ConsumeQueue):
    __slots__ = ()

    def truncate(self, physical_offset: int) -> None:
        """Leave the entries where they are."""


MUTANT = Mutant(
    name="consume-queue-kept",
    breaks="readers of all replicas see the log and nothing else",
    parts=(BrokerParts(storage=StorageParts(consume_queue=KeptQueue)),),
)
