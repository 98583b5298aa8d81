"""The confirm offset is the least acked offset over those members that are connected.

While a member is disconnected the offset moves on without it, and consumers read what that member lacks, which is cut
when it is elected. Broken rule: the confirm offset stays while a member is disconnected.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.confirm_offset import least_acked_offset, master_confirm_offset
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class ConfirmedByThePresent(Mastership):
    def confirmable_offset(self, least_acked: int | None) -> int:
        present = [member for member in self.must_ack() if member in self._acked]
        return master_confirm_offset(self.confirm_offset, least_acked_offset(present, self._acked))


MUTANT = Mutant(
    name="confirm-skips-missing",
    breaks="consumers never read what may still be cut",
    parts=(BrokerParts(mastership=ConfirmedByThePresent),),
)
