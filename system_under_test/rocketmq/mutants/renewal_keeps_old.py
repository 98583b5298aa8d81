"""A changed invisible time gets a new checkpoint, and the old one stays: the message comes again for both.

Broken rule: at most one checkpoint holds a message.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.records import Checkpoint, CheckpointKey
from system_under_test.rocketmq.broker.pop.service import PopService


class KeepingPops(PopService):
    def renewal(self, key: CheckpointKey, offset: int, invisible_ms: int) -> Checkpoint:
        return replace(super().renewal(key, offset, invisible_ms), replaces=None)


MUTANT = Mutant(
    name="renewal-keeps-old",
    breaks="a popped message is invisible for its changed time",
    parts=(BrokerParts(pop_service=KeepingPops),),
)
