"""A queue's lock is given to whoever asks for it, also while another member of the group has it.

Two members consume one queue at the same time, though its messages are to be consumed in order. Broken rule: a lock is
one member's until it gives it up or is silent for too long.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.queue_locks import QueueLocks
from system_under_test.rocketmq.mutants.mutant import Mutant


class GenerousLocks(QueueLocks):
    def may_take(self, lock_holder: str, client_id: str, is_over: bool) -> bool:
        return True


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, queue_locks=GenerousLocks)


MUTANT = Mutant(name="lock-granted-twice", breaks="in order, a queue is one member's at a time", broker=_broker)
