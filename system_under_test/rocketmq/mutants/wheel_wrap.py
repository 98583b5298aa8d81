"""A timer that is due beyond the window of the wheel is put into the slot that the wheel comes to first.

So it comes out whole turns too early. Broken rule: what is due beyond the window rolls.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.timer_wheel import Placement


def wrapped(due_ms: int, now_ms: int, window_ms: int, precision_ms: int) -> Placement:
    if due_ms - now_ms < window_ms:
        return Placement(due_ms, False)
    return Placement((now_ms + (due_ms - now_ms) % window_ms) // precision_ms * precision_ms, False)


MUTANT = Mutant(
    name="wheel-wrap", breaks="no message comes out before it is due", parts=(BrokerParts(timer_place=wrapped),)
)
