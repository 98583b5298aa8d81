"""dead-master-returned: a broker that registers is told the master, dead or alive, and with that all is settled.

It follows a master that is gone, and asks for no election, as it was told one; and the controller looks for no other
master for those it has sent to this one, until it has heard of it again. Broken rule: while a broker that may become
master lives, a dead master is replaced.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness, LivenessTable
from system_under_test.rocketmq.controller.masters import needs_master
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import ReplicaInfo
from system_under_test.rocketmq.controller.state_machine import Group


def master_on_record(group: Group, liveness: Liveness) -> ReplicaInfo:
    return group.info


def needs_master_unless_settled(group: Group, liveness: LivenessTable, leading_since_ns: int) -> bool:
    master = group.master
    if master is not None and liveness.heard_ns(group.name, master) is not None:
        for other in group.replicas:
            registered_since = not liveness.has_reported_since_birth(group.name, master, other)
            if group.living(other, liveness) is not None and registered_since:
                return False
    return needs_master(group, liveness, leading_since_ns)


MUTANT = Mutant(
    name="dead-master-returned",
    breaks="a dead master is replaced while another may be elected",
    parts=(ControllerParts(registration_answer=master_on_record, needs_master=needs_master_unless_settled),),
)
