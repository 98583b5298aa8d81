"""Since when a slave has not been caught up is measured by the wall clock.

Where that clock is wrong, a slave that is far behind counts as caught up, or one that is not as behind. Broken rule:
all protocol timing is monotonic.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants.mutant import Mutant


class WallClockMastership(Mastership):
    def catch_up_now_ns(self) -> int:
        return self.host.clock.wall_ns()


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, mastership=WallClockMastership)


MUTANT = Mutant(name="wall-clock-catch-up", breaks="who is in the SyncStateSet has kept up", broker=_broker)
