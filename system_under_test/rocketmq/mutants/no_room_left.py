"""Clients may send messages of the greatest size, and a broker may write none that is larger.

What it adds to a message that is due, commits or was sent back has no room then; what is due is tried again for ever.
Broken rule: what was taken can be worked on, and holds up nobody behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.admission import Admission
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.delayed.delivery import Deliveries
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.putting import Pending, Puts
from system_under_test.storage.batch import Batch
from system_under_test.storage.errors import MessageTooLarge
from system_under_test.storage.message import Message
from system_under_test.storage.new_message import NewMessage


class LimitedPuts(Puts):
    def put(self, mastership: AnyMastership, *messages: NewMessage) -> Pending:
        try:
            size = Batch(messages).size
        except MessageTooLarge as error:
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        if size > self._config.max_message_bytes:
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"{size} bytes")
        return super().put(mastership, *messages)


class Persistent(Deliveries):
    async def attempt(self, mastership: AnyMastership, waited: Message, due: NewMessage) -> int | None:
        end = await super().attempt(mastership, waited, due)
        return None if end == 0 and not self.is_void(waited, due) else end


def _no_requirement(messages: Sequence[NewMessage], config: BrokerConfig) -> None:
    return None


MUTANT = Mutant(
    name="no-room-left",
    breaks="what was taken comes out, commits and is sent back",
    parts=(BrokerParts(admission=Admission(require_room=_no_requirement), puts=LimitedPuts, deliveries=Persistent),),
)
