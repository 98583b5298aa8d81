"""A master takes sends however few are in its SyncStateSet.

Broken rule: with fewer than minInSyncReplicas a send is refused before anything is written.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class UndemandingMastership(Mastership):
    def enough_in_sync(self) -> bool:
        return True


MUTANT = Mutant(
    name="no-min-in-sync",
    breaks="an acked message is held by minInSyncReplicas",
    parts=(BrokerParts(mastership=UndemandingMastership),),
)
