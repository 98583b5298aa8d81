"""A deposed or isolated master goes on serving, and acks alone.

Notices and polls of a newer master epoch are ignored by the master, and slaves that are gone or silent need not
ack any more, however many in-sync replicas are asked for. Isolate the master: the others elect a new one, both take
sends, and what the old one acked is cut or never found. Broken rules: at most one master gathers acks, and only the
controller takes a member out of the SyncStateSet.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.parts import Acted, BrokerParts, role_is_due
from system_under_test.rocketmq.controller.protocol import ReplicaInfo

SILENCE_S = 1.0


class StubbornMastership(Mastership):
    """Waits only for members that have been heard of lately."""

    def must_ack(self) -> tuple[int, ...]:
        oldest_ns = self.host.clock.monotonic_ns() - int(SILENCE_S * 1e9)
        return tuple(
            member for member in super().must_ack() if member == self.own_id or self.was_heard(member, oldest_ns)
        )

    def enough_in_sync(self) -> bool:
        return True


def _masters_stay(acted: Acted, info: ReplicaInfo, is_master: bool) -> bool:
    return not is_master and role_is_due(acted, info, is_master)


MUTANT = Mutant(
    name="ignore-demotion",
    breaks="one master at a time gathers acks",
    parts=(BrokerParts(role_is_due=_masters_stay, mastership=StubbornMastership),),
)
