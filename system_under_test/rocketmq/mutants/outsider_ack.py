"""All that are connected count: a learner, or a slave outside of the SyncStateSet, acks for a member.

As many acks are waited for as ever, but not whose. Broken rule: only members of the SyncStateSet, and those proposed
for it, ack.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.confirm_offset import acked_by
from system_under_test.rocketmq.broker.ha.mastership import Mastership, SlaveConnection
from system_under_test.rocketmq.broker.parts import BrokerParts


class MastershipOfAnybody(Mastership):
    def acked(self, connection: SlaveConnection, offset: int) -> None:
        super().acked(connection, offset)
        self.advance()

    def replicated_offset(self, least: int | None) -> int:
        all_of_them = self.config.all_ack_in_sync_state_set
        count = len(self.must_ack()) if all_of_them else self.config.in_sync_replicas
        return acked_by(count, tuple(self._acked), self._acked)


MUTANT = Mutant(
    name="outsider-ack",
    breaks="members of the SyncStateSet hold an acked message",
    parts=(BrokerParts(mastership=MastershipOfAnybody),),
)
