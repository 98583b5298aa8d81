"""Whether a group needs a new master, and which master a broker is told when it registers. Pure."""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.controller.heartbeat import Liveness, LivenessTable
from system_under_test.rocketmq.controller.protocol import ReplicaInfo
from system_under_test.rocketmq.controller.state_machine import Group


def needs_master(group: Group, liveness: LivenessTable, leading_since_ns: int) -> bool:
    """Whether a controller that is active since `leading_since_ns` has to look for another master: for how long it
    has led does not matter."""
    if group.master_epoch == 0 or not any(group.living(replica, liveness) for replica in group.replicas):
        return False
    if group.master is None:
        return True
    return group.living(group.master, liveness) is None and group.may_judge(group.master, liveness)


def registration_answer(group: Group, liveness: Liveness) -> ReplicaInfo:
    """A master that is dead is not named: a broker that registers would wait for it in vain."""
    if group.master is None or group.living(group.master, liveness) is None:
        return replace(group.info, master_id=None, master_address=None)
    return group.info
