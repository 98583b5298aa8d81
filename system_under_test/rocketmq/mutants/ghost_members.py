"""A member whose connection has ended stays in the list of its group's members.

The others leave it its part of the queues, which nobody consumes. Broken rule: who is not there any more counts no
more.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.group_members import Group, GroupMembers
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants.mutant import Mutant


class Ghosts(GroupMembers):
    def closed(self, peer: Peer) -> tuple[Group, ...]:
        return ()

    def silent_since(self, before_ns: int) -> tuple[Group, ...]:
        return ()


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, group_members=Ghosts)


MUTANT = Mutant(name="ghost-members", breaks="every group consumes all queues", broker=_broker)
