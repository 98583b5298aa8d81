"""A changed invisible time gets a new checkpoint, also where the delivery is acknowledged, or over, already.

Once the new time is over the message comes again. Broken rule: a message whose acknowledgement was confirmed does not
come again.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.records import CheckpointKey
from system_under_test.rocketmq.broker.pop.service import PopService


class RenewingPops(PopService):
    def may_change(self, key: CheckpointKey, offset: int) -> bool:
        return True


MUTANT = Mutant(
    name="renew-after-ack",
    breaks="an acknowledged message does not come again",
    parts=(BrokerParts(pop_service=RenewingPops),),
)
