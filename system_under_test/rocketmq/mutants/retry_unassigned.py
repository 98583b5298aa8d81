"""A broker that divides queues among members leaves out the topics from which messages come again.

What a member could not consume is nobody's from then on. Broken rule: every queue that a group subscribes to is some
member's.
"""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.allocation import Allocation
from system_under_test.rocketmq.broker.consuming.assignment import assigned
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.consumer_protocol import RETRY_PREFIX, MessageQueue, RequestModeSetting


def assigned_but_retries(
    allocation: Allocation,
    client_id: str,
    queues: Sequence[MessageQueue],
    members: Sequence[str],
    setting: RequestModeSetting,
) -> tuple[MessageQueue, ...]:
    found = assigned(allocation, client_id, queues, members, setting)
    return tuple(queue for queue in found if not queue.topic.startswith(RETRY_PREFIX))


MUTANT = Mutant(
    name="retry-unassigned",
    breaks="every queue of a group is some member's",
    parts=(BrokerParts(assign=assigned_but_retries),),
)
"""Needs assignment=broker."""
