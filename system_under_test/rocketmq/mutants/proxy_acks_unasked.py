"""A proxy says that a message is acknowledged, whatever its broker answers, or whether it does.

The message comes again after a confirmed acknowledgement. Broken rule: a proxy promises what its broker has promised.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.receiving import Receiving
from system_under_test.rocketmq.proxy.refusals import OK
from system_under_test.rocketmq.proxy.v2 import AckMessageEntry, AckMessageResultEntry


class Assuming(Receiving):
    async def _acknowledged(self, group: str, topic: str, entry: AckMessageEntry) -> AckMessageResultEntry:
        result = await super()._acknowledged(group, topic, entry)
        result.status = OK
        return result


MUTANT = Mutant(
    name="proxy-acks-unasked",
    breaks="what is acknowledged does not come again",
    parts=(ProxyParts(receiving=Assuming),),
)
