"""After a restart dispatch goes on at the end of the recovered log, not where the consume queues end.

The messages between the two are in the log and in no consume queue. Those that come after them follow directly in the
queue, under places that are not their own. Broken rule: a recovered consume queue is built anew from where its durable
part ends.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.consume_queue import ConsumeQueue
from system_under_test.storage.store_config import StorageParts


class ClosingRanks(ConsumeQueue):
    """Takes whatever comes next for the entry that follows the last one."""

    __slots__ = ()

    def append(self, queue_offset: int, physical_offset: int, size: int, tags_code: int) -> None:
        if self.max_offset > self.min_offset:
            queue_offset = min(queue_offset, self.max_offset)
        super().append(queue_offset, physical_offset, size, tags_code)


def resumes_at_log_end(queues_end: int, log_end: int) -> int:
    return log_end


MUTANT = Mutant(
    name="dispatch-not-replayed",
    breaks="every acked message can be read from its queue",
    parts=(BrokerParts(storage=StorageParts(dispatch_resumes_at=resumes_at_log_end, consume_queue=ClosingRanks)),),
)
