"""keep-old-set: an election leaves the SyncStateSet as it was, and adds the new master where it is missing.

The new master begins with itself alone all the same, as it must, for its predecessor's acks are not its own; so the
controller takes for in sync whom the master does not wait for. Broken rule: an election resets the set to the master.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import SyncStateSet
from system_under_test.rocketmq.controller.state_machine import Group, Rules, elected


def elected_into_the_old_set(group: Group, master: int | None) -> Group:
    after = elected(group, master)
    return replace(after, sync_state_set=tuple(sorted({*group.sync_state_set, *after.sync_state_set})))


def alone(own_id: int, announced: SyncStateSet) -> SetView:
    return SetView(confirmed=SyncStateSet.of((own_id,), announced.epoch))


MUTANT = Mutant(
    name="keep-old-set",
    breaks="every broker that may be elected has acked",
    parts=(ControllerParts(rules=Rules(elected=elected_into_the_old_set)), BrokerParts(first_view=alone)),
)
