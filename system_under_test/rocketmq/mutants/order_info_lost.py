"""A new master does not know which messages were popped in order: it gives queues out from the committed offset on.

So what was acknowledged behind that comes again, and what is not yet visible comes too soon. Broken rule: what the log
says of a queue holds under each master.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import RevivePosition
from system_under_test.rocketmq.broker.pop.records import Checkpoint, Record
from system_under_test.rocketmq.broker.pop.service import PopService


class ForgetfulPops(PopService):
    def replay(self, record: Record, place: RevivePosition) -> None:
        if not isinstance(record, Checkpoint) or record.ordered is None:
            super().replay(record, place)


MUTANT = Mutant(
    name="order-info-lost",
    breaks="a new master knows what was popped in order",
    parts=(BrokerParts(pop_service=ForgetfulPops),),
)
"""Needs clients that pop in order."""
