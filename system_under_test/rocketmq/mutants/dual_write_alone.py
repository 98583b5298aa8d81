"""A synchronous master answers with success although no slave has the message.

Broken rule: in dual write a send succeeds only when a slave has acked it. When the master's disk is lost then, or,
under asynchronous flush, its power, what was acknowledged is lost.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.classic.mastership import ClassicMastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class LonelyMastership(ClassicMastership):
    def slave_available(self) -> bool:
        return True

    def replicated_offset(self, acked: int | None) -> int:
        return self.store.max_offset


MUTANT = Mutant(
    name="dual-write-alone",
    breaks="what a dual-write master acked is on a slave as well",
    parts=(BrokerParts(classic_mastership=LonelyMastership),),
)
