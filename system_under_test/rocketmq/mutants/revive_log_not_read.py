"""A new master begins at the end of the revive log: what its predecessor gave out is nobody's any more.

Messages that were given out and not acknowledged before the change of master do not come again. Broken rule: a new
master reads the revive log from where all before is settled.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.service import PopService


class ForgetfulPops(PopService):
    def first_unread(self, queue_id: int) -> int:
        return self._log.end(queue_id)


MUTANT = Mutant(
    name="revive-log-not-read",
    breaks="a popped message comes until it is acknowledged",
    parts=(BrokerParts(pop_service=ForgetfulPops),),
)
