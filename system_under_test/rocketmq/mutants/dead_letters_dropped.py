"""A message that was tried often enough is dropped instead of becoming a dead letter.

Nobody ever sees it again. Broken rule: what a group could not consume is kept in its dead-letter topic.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.consuming.retries import Return, what_becomes_of
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import DEAD_LETTER_PREFIX, SendBackRequest
from system_under_test.storage.message import Message


def dropped(message: Message, request: SendBackRequest, group: ConsumerGroup) -> Return | None:
    becomes = what_becomes_of(message, request, group)
    return None if becomes.topic.startswith(DEAD_LETTER_PREFIX) else becomes


MUTANT = Mutant(
    name="dead-letters-dropped",
    breaks="what failed comes again, or is a dead letter",
    parts=(BrokerParts(what_becomes_of=dropped),),
)
