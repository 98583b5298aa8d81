"""Brokers take every change of a static topic that they are asked for, however old it is.

A request that was held up, or an administrator that knows too little, takes a queue back to where it was. Broken rule:
a change of an older epoch is refused.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.static_topic.acceptance import EndOf, frozen_here
from system_under_test.rocketmq.static_topic.mapping import StaticTopic


def _accepted(current: StaticTopic | None, asked: StaticTopic, broker_name: str, end_of: EndOf) -> StaticTopic:
    if current is None:
        return asked
    changed = {
        queue_id: frozen_here(current.queues[queue_id], queue, broker_name, end_of)
        if queue_id in current.queues
        else queue
        for queue_id, queue in asked.queues.items()
    }
    return current.with_queues(changed)


MUTANT = Mutant(
    name="mapping-epoch-ignored",
    breaks="an old change takes no queue back",
    parts=(BrokerParts(accept_mapping=_accepted),),
)
