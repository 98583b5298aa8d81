"""no-master-epoch-check: an Alter is not refused for the master epoch it was sent under.

Whoever was master once is taken for one who may alter the set. Epochs of the set tell nothing across an election,
which begins a set of its own, so they are compared only where the Alter names the current master epoch. Broken rule:
a deposed master alters nothing.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import (
    AlterCheck,
    AlterSyncStateSet,
    Group,
    Refusal,
    by_the_master,
    of_the_current_set,
    under_the_master_epoch,
)
from system_under_test.rocketmq.mutants.mutant import Mutant


def _within_the_master_epoch(check: AlterCheck) -> AlterCheck:
    def checked(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
        return check(group, request, liveness) if request.master_epoch == group.master_epoch else None

    return checked


def _controller(parts: ControllerParts) -> ControllerParts:
    checks = tuple(
        _within_the_master_epoch(check) if check in (by_the_master, of_the_current_set) else check
        for check in parts.rules.alter_checks
        if check is not under_the_master_epoch
    )
    return replace(parts, rules=replace(parts.rules, alter_checks=checks))


MUTANT = Mutant(name="no-master-epoch-check", breaks="a deposed master alters nothing", controller=_controller)
