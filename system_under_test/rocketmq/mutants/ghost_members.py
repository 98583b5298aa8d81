"""A member whose connection has ended stays in the list of its group's members.

The others leave it its part of the queues, which nobody consumes. Broken rule: who is not there any more counts no
more.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.group_members import Group, GroupMembers
from system_under_test.rocketmq.broker.parts import BrokerParts


class Ghosts(GroupMembers):
    def closed(self, peer: Peer) -> tuple[Group, ...]:
        return ()

    def silent_since(self, before_ns: int) -> tuple[Group, ...]:
        return ()


MUTANT = Mutant(
    name="ghost-members", breaks="every group consumes all queues", parts=(BrokerParts(group_members=Ghosts),)
)
