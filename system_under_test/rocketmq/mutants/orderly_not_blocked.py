"""A queue that is popped in order is open to the next one while somebody has messages of it.

Broken rule: nothing of it is given out before all that was given out is acknowledged, or its time is over.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import OpenCheckpoint
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.rocketmq.pop_protocol import PopRequest


class OpenPops(PopService):
    def is_blocked(self, last: OpenCheckpoint, request: PopRequest, now_ns: int) -> bool:
        return False


MUTANT = Mutant(
    name="orderly-not-blocked",
    breaks="a queue that is popped in order waits",
    parts=(BrokerParts(pop_service=OpenPops),),
)
"""Needs clients that pop in order."""
