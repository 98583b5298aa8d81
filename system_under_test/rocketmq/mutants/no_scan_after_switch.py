"""no-scan-after-switch: a controller replaces only masters that it has heard of since it leads.

One that died with the leader before it, or before this one was elected, is never noticed. Broken rule: a new leader
takes over the watch over all masters.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import LivenessTable
from system_under_test.rocketmq.controller.masters import needs_master
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import Group


def died_under_this_leader(group: Group, liveness: LivenessTable, leading_since_ns: int) -> bool:
    if group.master is not None:
        heard_ns = liveness.heard_ns(group.name, group.master)
        if heard_ns is None or heard_ns < leading_since_ns:
            return False
    return needs_master(group, liveness, leading_since_ns)


MUTANT = Mutant(
    name="no-scan-after-switch",
    breaks="a dead master is replaced while another may be elected",
    parts=(ControllerParts(needs_master=died_under_this_leader),),
)
