"""no-epoch-bump: where one broker follows another as master, the master epoch stays what it was.

Brokers go by the name of the master instead, so failover works as ever. What two masters wrote in one epoch cannot be
told apart: the new one has no entry of its own in the epoch file, and its predecessor, which comes back with bytes
that nobody acked, finds that all it has is of the epoch that holds. Broken rule: a master epoch has one master.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import Acted, BrokerParts, role_is_due, supersedes
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import ReplicaInfo
from system_under_test.rocketmq.controller.state_machine import Group, Rules, elected


def elected_in_the_same_epoch(group: Group, master: int | None) -> Group:
    after = elected(group, master)
    is_handed_over = group.master is not None and master is not None and group.master != master
    return replace(after, master_epoch=group.master_epoch) if is_handed_over else after


def other_master_is_due(acted: Acted, info: ReplicaInfo, is_master: bool) -> bool:
    return role_is_due(acted, info, is_master) or (
        info.master_epoch == acted.master_epoch and info.master_id not in (None, acted.master_id)
    )


def other_master_supersedes(newest: ReplicaInfo, info: ReplicaInfo) -> bool:
    return supersedes(newest, info) or (
        newest.master_epoch == info.master_epoch and newest.master_id not in (None, info.master_id)
    )


MUTANT = Mutant(
    name="no-epoch-bump",
    breaks="a master epoch has one master",
    parts=(
        ControllerParts(rules=Rules(elected=elected_in_the_same_epoch)),
        BrokerParts(role_is_due=other_master_is_due, supersedes=other_master_supersedes),
    ),
)
