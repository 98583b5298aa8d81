"""The progress of a delay level passes a message before its copy is written.

A master that dies in between, or cannot write, leaves progress behind that passes over the message. Broken rule: a
message counts as delivered once its copy is confirmed.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.delayed.delay_service import DelayLevel
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.message import Message


class ProgressFirst(DelayLevel):
    async def _deliver(self, message: Message, tries: int) -> bool:
        if tries == 1:
            self._delivered(message, 0)
        return await super()._deliver(message, tries)


MUTANT = Mutant(
    name="progress-first",
    breaks="a delayed message that was acked is delivered",
    parts=(BrokerParts(delay_level=ProgressFirst),),
)
