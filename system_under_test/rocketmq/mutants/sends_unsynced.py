"""A configured master sends its slaves what it has not made durable yet, and shows it to consumers, also under
synchronous flush.

Broken rule: what a slave has, and consumers have seen, a loss of the master's power cannot take.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.classic.mastership import ClassicMastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class HastyMastership(ClassicMastership):
    def sendable_offset(self) -> int:
        return self.store.max_offset


MUTANT = Mutant(
    name="sends-unsynced",
    breaks="no slave is ahead of what its master has durably",
    parts=(BrokerParts(classic_mastership=HastyMastership),),
)
