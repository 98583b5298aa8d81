"""Of messages that were given out together and acknowledged in part, the rest does not come again.

Broken rule: a message comes again unless it was acknowledged itself.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import OpenCheckpoint
from system_under_test.rocketmq.broker.pop.revival import Revival
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.storage.message import Message


class DroppingRevival(Revival):
    def messages_left(self, found: OpenCheckpoint) -> dict[int, Message]:
        if len(found.left) < len(found.checkpoint.offsets):
            self._settle("popped_messages_deleted", found, tuple(found.left))
            return {}
        return super().messages_left(found)


class DroppingPops(PopService):
    revival_type = DroppingRevival


MUTANT = Mutant(
    name="revive-drop",
    breaks="a popped message comes until it is acknowledged",
    parts=(BrokerParts(pop_service=DroppingPops),),
)
