"""revival-passes-over: what may not be written again, because too few are in sync, is passed over.

A new master is alone for a moment, so whatever is due then never comes again. Published releases of RocketMQ pass over
it so. Broken rule: a message comes again unless it was acknowledged itself.
"""

from __future__ import annotations

from typing import Any

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.ledger import OpenCheckpoint
from system_under_test.rocketmq.broker.pop.records import CheckpointKey
from system_under_test.rocketmq.broker.pop.revival import Revival
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.storage.message import Message


class PassingRevival(Revival):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._refused: set[CheckpointKey] = set()

    def messages_left(self, found: OpenCheckpoint) -> dict[int, Message]:
        if found.checkpoint.key not in self._refused:
            return super().messages_left(found)
        self._settle("popped_messages_passed_over", found, tuple(found.left))
        return {}

    async def _let_come_again(self, found: OpenCheckpoint) -> bool:
        is_through = await super()._let_come_again(found)
        if not is_through:
            self._refused.add(found.checkpoint.key)
        return is_through


class PassingPops(PopService):
    revival_type = PassingRevival


MUTANT = Mutant(
    name="revival-passes-over",
    breaks="a popped message comes until it is acknowledged",
    parts=(BrokerParts(pop_service=PassingPops),),
)
