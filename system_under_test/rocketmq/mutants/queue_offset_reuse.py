"""A master learns its next queue offsets from the consume queues alone.

What lies in the log and is not dispatched yet has queue offsets already; the next messages get the same ones again, and
of two messages with one queue offset readers see the first. Broken rule: a queue offset is given once.
"""

from __future__ import annotations

from collections.abc import Iterable

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.consume_queue import ConsumeQueue
from system_under_test.storage.message import MessageHeader
from system_under_test.storage.store_config import StorageParts, next_queue_offsets


def dispatched_only(
    queues: Iterable[ConsumeQueue], undispatched: Iterable[MessageHeader]
) -> dict[tuple[str, int], int]:
    return next_queue_offsets(queues, ())


MUTANT = Mutant(
    name="queue-offset-reuse",
    breaks="each acked message has a place of its own in its queue",
    parts=(BrokerParts(storage=StorageParts(next_queue_offsets=dispatched_only)),),
)
