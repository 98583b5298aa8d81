"""A message that was tried before is not stored when it is sent back again, though the answer says that it is.

Its group never gets it again, and it is no dead letter. Broken rule: what the broker has taken back is as safe as what
was sent.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.consuming.retries import Return, what_becomes_of
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import SendBackRequest
from system_under_test.storage.message import Message


def only_once(message: Message, request: SendBackRequest, group: ConsumerGroup) -> Return | None:
    becomes = what_becomes_of(message, request, group)
    is_first = message.reconsume_times == 0
    return becomes if is_first or becomes.delay_level == 0 else None


MUTANT = Mutant(
    name="retry-not-stored",
    breaks="what failed comes again, or is a dead letter",
    parts=(BrokerParts(what_becomes_of=only_once),),
)
