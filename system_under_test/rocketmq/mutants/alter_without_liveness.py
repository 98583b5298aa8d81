"""alter-without-liveness: an Alter may name replicas that are dead.

Breaks the rule that every member of a new SyncStateSet lives. A replica that died while the Alter was under way is
admitted all the same: the set has a member that acks nothing, and that nobody can elect.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import (
    AlterSyncStateSet,
    Group,
    Refusal,
    Rules,
    to_living_replicas,
    unknown_member,
)


def to_known_replicas(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    unknown = [member for member in request.proposed.members if member not in group.replicas]
    return unknown_member(unknown[0]) if unknown else None


CHECKS = tuple(to_known_replicas if check is to_living_replicas else check for check in Rules().alter_checks)
MUTANT = Mutant(
    name="alter-without-liveness",
    breaks="a member of a new SyncStateSet is alive",
    parts=(ControllerParts(rules=Rules(alter_checks=CHECKS)),),
)
