"""newcomer-blocks-shrink: a master proposes who leaves the SyncStateSet and who joins it at once.

A newcomer that the controllers do not hear has the whole proposal refused, again and again, so a dead member stays, and
nothing is acknowledged. Broken rule: who has to leave does not wait for who wants to join.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import BrokerParts


class AtOnceMastership(Mastership):
    def wanted_members(self) -> tuple[int, ...] | None:
        if self.view.proposed is not None:
            return None
        floor = max(self.confirm_offset, self.epoch_start_offset)
        patience_ns = int(self.config.max_time_slave_not_caught_up_s * 1e9)
        wanted = {self.own_id}
        for broker_id, slave in self.slaves().items():
            holds = broker_id in self.view.members or slave.acked_offset >= floor
            if holds and slave.electable and self.catch_up_now_ns() - slave.caught_up_ns <= patience_ns:
                wanted.add(broker_id)
        members = tuple(sorted(wanted))
        return None if members == self.view.members else members


MUTANT = Mutant(
    name="newcomer-blocks-shrink",
    breaks="a quorum that is healthy and connected is served",
    parts=(BrokerParts(mastership=AtOnceMastership),),
)
