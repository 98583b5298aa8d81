"""Since when a slave has not been caught up is measured by the wall clock.

Where that clock is wrong, a slave that is far behind counts as caught up, or one that is not as behind. Broken rule:
all protocol timing is monotonic.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class WallClockMastership(Mastership):
    def catch_up_now_ns(self) -> int:
        return self.host.clock.wall_ns()


MUTANT = Mutant(
    name="wall-clock-catch-up",
    breaks="who is in the SyncStateSet has kept up",
    parts=(BrokerParts(mastership=WallClockMastership),),
)
