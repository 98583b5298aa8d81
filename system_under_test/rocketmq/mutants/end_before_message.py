"""That a transaction has ended is written, and confirmed, before the message that it commits.

A master that dies in between leaves a transaction that has ended without its message, and nobody asks about it any
more. Broken rule: a broker that holds the end holds the message.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.putting import Pending
from system_under_test.rocketmq.broker.transactions.service import Transactions, end_of, whole_of
from system_under_test.rocketmq.transaction_protocol import Decision
from system_under_test.storage.message import Message


class EndFirst(Transactions):
    async def write_end(self, mastership: AnyMastership, half: Message, decision: Decision) -> Pending:
        if decision is not Decision.COMMIT:
            return await super().write_end(mastership, half, decision)
        if not await self._puts.confirmed(self._puts.put(mastership, end_of(half))):
            raise RemotingError(ResponseCode.NOT_MASTER, "the role was lost")
        return self._puts.put(mastership, self._waiting.place(whole_of(half)))


MUTANT = Mutant(
    name="end-before-message",
    breaks="a message that its producer commits is seen",
    parts=(BrokerParts(transactions=EndFirst),),
)
