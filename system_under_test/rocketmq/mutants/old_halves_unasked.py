"""A new master asks only about transactions that were begun under it.

One that was open at the change of master, and whose producer does not say unasked how it ends, stays open for good.
Broken rule: a new master asks about all that is open.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.transactions.service import Transactions
from system_under_test.rocketmq.topic import HALF_TOPIC, OP_TOPIC


class Forgetful(Transactions):
    def first_offsets(self) -> tuple[int, int]:
        return self._store.queue_end(HALF_TOPIC, 0), self._store.queue_end(OP_TOPIC, 0)


MUTANT = Mutant(
    name="old-halves-unasked",
    breaks="a message that its producer commits is seen",
    parts=(BrokerParts(transactions=Forgetful),),
)
