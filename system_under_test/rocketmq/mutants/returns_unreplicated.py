"""returns-unreplicated: that a message was sent back is answered with success as soon as it is in the master's own log.

The group is then through with it, and after a change of masters nobody has it. Published releases of RocketMQ answer
so. Broken rule: what the broker has taken back is as safe as what was sent.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.broker.consuming.returned_messages import ReturnedMessages
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.putting import Pending


class AnswersAtOnce(ReturnedMessages):
    async def _taken_back(self, pending: Pending) -> tuple[ResponseCode, str | None]:
        return ResponseCode.SUCCESS, None


MUTANT = Mutant(
    name="returns-unreplicated",
    breaks="what failed comes again, or is a dead letter",
    parts=(BrokerParts(returned_messages=AnswersAtOnce),),
)
