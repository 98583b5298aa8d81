"""A message that comes back is stored with the count of tries that it had.

It comes again and again, and never becomes a dead letter. Broken rule: each time that a message is sent back its count
rises by one.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.consuming.retries import Return, what_becomes_of
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import SendBackRequest
from system_under_test.storage.message import Message


def uncounted(message: Message, request: SendBackRequest, group: ConsumerGroup) -> Return:
    return replace(what_becomes_of(message, request, group), reconsume_times=message.reconsume_times)


MUTANT = Mutant(
    name="retry-count-kept",
    breaks="a message is tried as often as its group says",
    parts=(BrokerParts(what_becomes_of=uncounted),),
)
