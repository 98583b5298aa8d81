"""A cut of the log leaves the offsets that consumer groups have committed as they are.

A group whose offset lies beyond the new end of its queue passes over the messages that are written there next. Broken
rule: every cut of the log lowers consumer offsets to what is left.
"""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.consumer_offsets import ConsumerOffsets
from system_under_test.storage.store_config import StorageParts


class KeptOffsets(ConsumerOffsets):
    def clamp(self, queue_end: Callable[[str, int], int]) -> None:
        """Leave them where they are."""


MUTANT = Mutant(
    name="consumer-offset-kept",
    breaks="a group passes over no acked message",
    parts=(BrokerParts(storage=StorageParts(consumer_offsets=KeptOffsets)),),
)
