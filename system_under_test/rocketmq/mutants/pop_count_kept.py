"""A message that comes again says that it came as often as before.

So it never is among the dead letters, and a consumer that gives up after some tries never does. Broken rule: the count
rises each time.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.redelivery import PutAgain
from system_under_test.rocketmq.broker.pop.revival import Revival
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.storage.message import Message
from system_under_test.storage.message_store import PutResult


class CountingRevival(Revival):
    def _put_message(self, message: Message, again: PutAgain) -> PutResult:
        return super()._put_message(message, again._replace(reconsume_times=message.reconsume_times))


class CountingPops(PopService):
    revival_type = CountingRevival


MUTANT = Mutant(
    name="pop-count-kept", breaks="a message says how often it came", parts=(BrokerParts(pop_service=CountingPops),)
)
