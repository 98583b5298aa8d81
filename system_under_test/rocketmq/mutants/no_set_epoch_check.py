"""no-set-epoch-check: an Alter is accepted whatever epoch of the SyncStateSet it was meant to replace.

Breaks the rule that an Alter replaces exactly the set its sender knew: one that was overtaken by a newer one of the
same master undoes it, and puts back a member that nobody waits for any more.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import of_the_current_set
from system_under_test.rocketmq.mutants.mutant import Mutant


def _controller(parts: ControllerParts) -> ControllerParts:
    checks = tuple(check for check in parts.rules.alter_checks if check is not of_the_current_set)
    return replace(parts, rules=replace(parts.rules, alter_checks=checks))


MUTANT = Mutant(name="no-set-epoch-check", breaks="whoever may be elected has acked", controller=_controller)
