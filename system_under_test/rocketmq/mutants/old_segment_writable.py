"""A group that has given a queue away goes on taking messages for it.

They stand behind the end of its segment, which its readers are led past. Broken rule: the old segment is frozen before
the new one begins.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.topics.static_topics import StaticTopics
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment


class NeverFrozen(StaticTopics):
    def writable(self, queue: LogicQueue) -> Segment | None:
        own = queue.of(self._config.group)
        return own[-1] if own else None


MUTANT = Mutant(
    name="old-segment-writable",
    breaks="a queue has one group that takes its messages",
    parts=(BrokerParts(static_topics=NeverFrozen),),
)
