"""A group that is given more queues for what comes again keeps its topic as it was made.

What is sent back is stored in queues that nobody reads: neither heartbeats nor what is sent back make the topic wider,
and nobody looks for a queue that has readers. Broken rule: the topic of a group has all queues that the group
may use, also those it was given later.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.consuming.retries import Return
from system_under_test.rocketmq.broker.consuming.returned_messages import ReturnedMessages
from system_under_test.rocketmq.broker.delayed.delivery import Deliveries
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.storage.new_message import NewMessage


class MadeOnce(Administration):
    def has_topic_of_group(self, name: str, queues: int) -> bool:
        return super().has_topic_of_group(name, 1)


class IntoAnyQueue(ReturnedMessages):
    def _queues(self, becomes: Return) -> int:
        return becomes.queues


class AsItWaited(Deliveries):
    def readable(self, due: NewMessage) -> NewMessage:
        return due


MUTANT = Mutant(
    name="retry-queues-kept",
    breaks="what failed comes again, or is a dead letter",
    parts=(BrokerParts(administration=MadeOnce, returned_messages=IntoAnyQueue, deliveries=AsItWaited),),
)
