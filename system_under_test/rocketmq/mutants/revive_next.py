"""Instead of a message that was not acknowledged the one behind it in its queue comes again.

So the message itself is lost, and another one comes though it was acknowledged, or is not due. Broken rule: what comes
again is the message that was given out.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import OpenCheckpoint
from system_under_test.rocketmq.broker.pop.revival import Revival
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.storage.message import Message, decode_message


class NextRevival(Revival):
    def messages_left(self, found: OpenCheckpoint) -> dict[int, Message]:
        key = found.checkpoint.key
        messages = super().messages_left(found)
        for offset in messages:
            following = self._store.get_messages(key.topic, key.queue_id, offset + 1, 1).messages
            if following:
                messages[offset] = decode_message(following[0], 0)
        return messages


class NextPops(PopService):
    revival_type = NextRevival


MUTANT = Mutant(
    name="revive-next",
    breaks="the message that was not acknowledged comes again",
    parts=(BrokerParts(pop_service=NextPops),),
)
