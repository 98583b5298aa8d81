"""A changed invisible time gets a new checkpoint, also where the delivery is acknowledged, or over, already.

Once the new time is over the message comes again. Broken rule: a message whose acknowledgement was confirmed does not
come again.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.records import CheckpointKey
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.rocketmq.mutants.mutant import Mutant


class RenewingPops(PopService):
    def may_change(self, key: CheckpointKey, offset: int) -> bool:
        return True


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, pop_service=RenewingPops)


MUTANT = Mutant(name="renew-after-ack", breaks="an acknowledged message does not come again", broker=_broker)
