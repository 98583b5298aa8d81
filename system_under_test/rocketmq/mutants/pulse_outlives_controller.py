"""pulse-outlives-controller: the counter that orders reports begins at 0 in each life of a controller, and names none.

Brokers bring back numbers of the life before, which are greater than those of this one, so a report from before a
master's death passes for one from after it. Broken rule: a master that gives up is compared with what the others hold
since.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import seen_pulse
from system_under_test.rocketmq.controller.parts import ControllerParts


def of_any_life(life: str, brought: str) -> int:
    return seen_pulse("", f".{brought.rpartition('.')[2]}")


MUTANT = Mutant(
    name="pulse-outlives-controller",
    breaks="who is in sync and lives is not passed over",
    parts=(ControllerParts(seen_pulse=of_any_life),),
)
