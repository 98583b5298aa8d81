"""Where delayed messages are delivered side by side, one that could not be written is passed over.

Broken rule: progress is what is delivered without a gap, and what is not is tried again.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.delayed.delay_service import DelayLevel
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.message import Message


class Skipping(DelayLevel):
    async def _deliver_by_itself(self, message: Message) -> None:
        if not await self._deliver(message, 1):
            self._delivered(message, 0)


MUTANT = Mutant(
    name="async-skip",
    breaks="a delayed message that was acked is delivered",
    parts=(BrokerParts(delay_level=Skipping),),
)
