"""A delayed message that could not be written three times is dropped.

While too few replicas are in sync nothing can be written, which passes. Broken rule: what was acked is tried until it
is delivered.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.delayed.delay_service import DelayLevel
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.message import Message

MOST_TRIES = 3


class Capped(DelayLevel):
    async def _deliver(self, message: Message, tries: int) -> bool:
        if tries > MOST_TRIES:
            self._delivered(message, 0)
            return True
        return await super()._deliver(message, tries)


MUTANT = Mutant(
    name="retry-cap", breaks="a delayed message that was acked is delivered", parts=(BrokerParts(delay_level=Capped),)
)
