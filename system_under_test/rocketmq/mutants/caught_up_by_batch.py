"""A slave that acks the batch it was sent counts as caught up, however much more the master holds.

Broken rule: a slave is caught up as of the time at which it held all that its master held.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class BatchwiseMastership(Mastership):
    def catch_up_offset(self, sent_end: int) -> int:
        return sent_end


MUTANT = Mutant(
    name="caught-up-by-batch",
    breaks="who is in the SyncStateSet has kept up",
    parts=(BrokerParts(mastership=BatchwiseMastership),),
)
