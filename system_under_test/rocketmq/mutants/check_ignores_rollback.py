"""A producer that is asked about a transaction and says that it rolls back is taken to commit.

Broken rule: a transaction ends as its producer says, however the broker hears of it.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.transactions.service import Transactions
from system_under_test.rocketmq.transaction_protocol import Decision, EndTransaction


class Committing(Transactions):
    def decision_of(self, request: EndTransaction) -> Decision:
        return Decision.COMMIT if request.is_answer else request.decision


MUTANT = Mutant(
    name="check-ignores-rollback",
    breaks="a message of a transaction is seen only if it commits",
    parts=(BrokerParts(transactions=Committing),),
)
