"""What was popped in order and not acknowledged in time is passed over: the queue goes on behind it.

Broken rule: in order, what is left comes again before anything that lies behind it.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import OpenCheckpoint
from system_under_test.rocketmq.broker.pop.queue_read import QueueKey
from system_under_test.rocketmq.broker.pop.service import PopService


class SkippingPops(PopService):
    def last_ordered(self, key: QueueKey) -> OpenCheckpoint | None:
        last = super().last_ordered(key)
        if last is not None and not last.is_blocking(self._host.clock.monotonic_ns()):
            self._append_settlement(last.checkpoint.key, tuple(last.left))
        return super().last_ordered(key)


MUTANT = Mutant(
    name="left-over-skipped",
    breaks="in order, what is left comes again first",
    parts=(BrokerParts(pop_service=SkippingPops),),
)
"""Needs clients that pop in order."""
