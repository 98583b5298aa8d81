"""The local SyncStateSet shrinks when the Alter is sent, not when the controller has confirmed it.

The master loses the controller and a slave: it drops the slave from what must ack at once, acks alone, while the
controller still holds the slave for a member and elects it. Broken rule: the local set changes only after the
controller has confirmed.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.controller.protocol import SyncStateSet


def _shrink_at_once(view: SetView, proposed: tuple[int, ...]) -> SetView:
    staying = tuple(member for member in view.members if member in proposed)
    return SetView(confirmed=SyncStateSet.of(staying, view.confirmed.epoch), proposed=proposed)


MUTANT = Mutant(
    name="shrink-first",
    breaks="every broker that may be elected has acked",
    parts=(BrokerParts(begin_alter=_shrink_at_once),),
)
