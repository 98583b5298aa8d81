"""A new master does not know which messages were popped in order: it gives queues out from the committed offset on.

So what was acknowledged behind that comes again, and what is not yet visible comes too soon. Broken rule: what the log
says of a queue holds under each master.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import Place
from system_under_test.rocketmq.broker.pop.records import Checkpoint, Record
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.rocketmq.mutants.mutant import Mutant


class ForgetfulPops(PopService):
    def replay(self, record: Record, place: Place) -> None:
        if not isinstance(record, Checkpoint) or record.ordered is None:
            super().replay(record, place)


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, pop_service=ForgetfulPops)


MUTANT = Mutant(name="order-info-lost", breaks="a new master knows what was popped in order", broker=_broker)
"""Needs clients that pop in order."""
