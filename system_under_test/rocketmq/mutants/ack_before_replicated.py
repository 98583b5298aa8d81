"""An acknowledgement of a popped message is confirmed as soon as the master has written it.

If the master is gone before a slave has it, the next master lets the message come again. Broken rule: what is confirmed
to a consumer is as safe as an acknowledged send.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.acknowledgement import send_on
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.service import PopService


class HastyAcks(PopService):
    async def confirm_acknowledgement(self, end_offset: int) -> None:
        send_on(self._host, self.mastership, end_offset)


MUTANT = Mutant(
    name="ack-before-replicated",
    breaks="an acknowledged message does not come again",
    parts=(BrokerParts(pop_service=HastyAcks),),
)
