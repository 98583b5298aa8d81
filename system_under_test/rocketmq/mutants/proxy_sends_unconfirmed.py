"""A proxy tells a producer that its message is sent though the broker did not answer, or not in time.

The message may be nowhere. Broken rule: a proxy promises what its broker has promised.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.refusals import OK, Refused
from system_under_test.rocketmq.proxy.sending import Sending
from system_under_test.rocketmq.proxy.v2 import Code, SendResultEntry, UserMessage

UNCERTAIN = (Code.PROXY_TIMEOUT, Code.INTERNAL_ERROR, Code.HA_NOT_AVAILABLE, Code.SLAVE_PERSISTENCE_TIMEOUT)


class Hoping(Sending):
    async def _sent(self, message: UserMessage) -> SendResultEntry:
        try:
            return await super()._sent(message)
        except Refused as refused:
            if refused.code not in UNCERTAIN:
                raise
            return SendResultEntry(status=OK)


MUTANT = Mutant(
    name="proxy-sends-unconfirmed", breaks="acknowledged messages survive", parts=(ProxyParts(sending=Hoping),)
)
