"""A group that takes a queue over counts from where the segment before began, not from behind its end.

So logic offsets are used twice. Broken rule: a segment begins behind the end of the one before.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.static_topic.acceptance import EndOf, accepted
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue
from system_under_test.rocketmq.static_topic.mapping import StaticTopic


def _overlapping(queue: LogicQueue, broker_name: str) -> LogicQueue:
    if len(queue.segments) == 1 or queue.leader != broker_name:
        return queue
    last = replace(queue.last, logic_offset=queue.segments[-2].logic_offset)
    return replace(queue, segments=(*queue.segments[:-1], last))


def _accepted(current: StaticTopic | None, asked: StaticTopic, broker_name: str, end_of: EndOf) -> StaticTopic:
    topic = accepted(current, asked, broker_name, end_of)
    queues = {queue_id: _overlapping(topic.queues[queue_id], broker_name) for queue_id in asked.queues}
    return topic if current is not None and topic == current else topic.with_queues(queues)


MUTANT = Mutant(
    name="logic-offset-overlap", breaks="a logic offset is used once", parts=(BrokerParts(accept_mapping=_accepted),)
)
