"""A master that becomes a slave answers all who wait with success.

Its role is what they waited under, and with the role goes the SyncStateSet that had to acknowledge: nobody is left to
wait for. Isolate the master while clients still reach it, let the others elect another, and heal: what waited is
acknowledged and is in no other log. (Seen in RocketMQ 5.4.0 itself.) Broken rule: what a master that lost its role
does not know to be replicated has an unknown outcome.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class MastershipThatAcksAtItsEnd(Mastership):
    def end(self) -> None:
        self._waiting.release(self.store.max_offset)
        super().end()


MUTANT = Mutant(
    name="demotion-acks",
    breaks="what is acknowledged is held by all of the SyncStateSet",
    parts=(BrokerParts(mastership=MastershipThatAcksAtItsEnd),),
)
