"""A batch is taken for so many messages, each for itself.

A write that a loss of power tears, or replication that a failover cuts off half-way, leaves the first messages of a
batch, as RocketMQ does. Broken rule: a log is recovered, cut and shown by whole batches.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.message import MESSAGES
from system_under_test.storage.store_config import StorageParts


def never(buffer: bytes, position: int) -> bool:
    return False


MUTANT = Mutant(
    name="torn-batch",
    breaks="a batch is in the log as a whole or not at all",
    parts=(BrokerParts(storage=StorageParts(record_format=replace(MESSAGES, goes_on=never))),),
)
