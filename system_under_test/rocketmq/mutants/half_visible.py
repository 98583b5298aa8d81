"""A half message goes to the topic of its consumers at once.

They see it before its producer has said that it commits, and also if it never does. Broken rule: a message of a
transaction is seen if and only if it commits.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.transactions.service import Transactions
from system_under_test.storage.new_message import NewMessage


class Visible(Transactions):
    def half(self, message: NewMessage, producer_group: str) -> NewMessage:
        super().half(message, producer_group)
        return message


MUTANT = Mutant(
    name="half-visible",
    breaks="a message of a transaction is seen only if it commits",
    parts=(BrokerParts(transactions=Visible),),
)
