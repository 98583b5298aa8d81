"""What takes timers back is kept in the memory of the master that took it: the next one delivers them all the same.

Broken rule: a new master makes its wheel of all that the topic of timers has, what takes others back among it.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.delayed.timer_messages import Named
from system_under_test.rocketmq.broker.delayed.timer_service import Turning
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.timer_log import TimerUnit


class _Forgetful(Turning):
    def taken_back(self, unit: TimerUnit) -> Named | None:
        return None if unit.queue_offset < self.past_end else super().taken_back(unit)


MUTANT = Mutant(
    name="taken-back-forgotten",
    breaks="what was taken back in time does not come out",
    parts=(BrokerParts(timer_turning=_Forgetful),),
)
