"""no-master-epoch-check: an Alter is not refused for the master epoch it was sent under.

A broker that was master once is taken for one that may alter the set. Epochs of the set tell nothing across an
election, which begins a set of its own, so they are compared only where the Alter names the current master epoch.
Broken rule: a deposed master alters nothing.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import (
    AlterCheck,
    AlterSyncStateSet,
    Group,
    Refusal,
    Rules,
    by_the_master,
    of_the_current_set,
    under_the_master_epoch,
)


def _within_the_master_epoch(check: AlterCheck) -> AlterCheck:
    def checked(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
        return check(group, request, liveness) if request.master_epoch == group.master_epoch else None

    return checked


CHECKS = tuple(
    _within_the_master_epoch(check) if check in (by_the_master, of_the_current_set) else check
    for check in Rules().alter_checks
    if check is not under_the_master_epoch
)
MUTANT = Mutant(
    name="no-master-epoch-check",
    breaks="a deposed master alters nothing",
    parts=(ControllerParts(rules=Rules(alter_checks=CHECKS)),),
)
