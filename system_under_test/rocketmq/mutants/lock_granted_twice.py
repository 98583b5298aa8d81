"""A queue's lock is given to each member that asks for it, also while another member of the group has it.

Two members consume one queue at the same time, though its messages are to be consumed in order. Broken rule: a lock is
one member's until it gives it up or is silent for too long.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.consuming.queue_locks import QueueLocks
from system_under_test.rocketmq.broker.parts import BrokerParts


class GenerousLocks(QueueLocks):
    def may_take(self, lock_holder: str, client_id: str, is_over: bool) -> bool:
        return True


MUTANT = Mutant(
    name="lock-granted-twice",
    breaks="in order, a queue is one member's at a time",
    parts=(BrokerParts(queue_locks=GenerousLocks),),
)
