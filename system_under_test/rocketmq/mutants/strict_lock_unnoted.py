"""A replica that is asked whether a queue may be given says yes, and does not remember it.

After a change of masters two members consume one queue at the same time. Broken rule: most replicas know each strict
lock.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.consuming.locking import Locking
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.consumer_protocol import QueueLockRequest, locked_queues_answer


class CarelessLocking(Locking):
    async def lock_for_master(self, request: QueueLockRequest) -> RemotingCommand:
        return locked_queues_answer(request.queues)


MUTANT = Mutant(
    name="strict-lock-unnoted",
    breaks="most replicas know each strict lock",
    parts=(BrokerParts(locking=CarelessLocking),),
)
"""Needs strict_locks=true."""
