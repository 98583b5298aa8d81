"""no-set-epoch-check: an Alter is accepted whatever epoch of the SyncStateSet it was meant to replace.

Breaks the rule that an Alter replaces exactly the set its sender knew: one that was overtaken by a newer one of the
same master undoes it, and puts back a member that nobody waits for any more.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import Rules, of_the_current_set

CHECKS = tuple(check for check in Rules().alter_checks if check is not of_the_current_set)
MUTANT = Mutant(
    name="no-set-epoch-check",
    breaks="every broker that may be elected has acked",
    parts=(ControllerParts(rules=Rules(alter_checks=CHECKS)),),
)
