"""A slave that is proposed for the SyncStateSet need not ack before the controller's answer has come.

The controller takes it into the set when it gets the Alter, so from then on it may be elected, and it may lack what
was acked until the answer came, or for as long as that is lost. Broken rule: while an Alter is in flight members and
proposed alike have to ack.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView
from system_under_test.rocketmq.broker.parts import BrokerParts


def newcomers_do_not_count_yet(view: SetView, proposed: tuple[int, ...]) -> SetView:
    return replace(view, proposed=tuple(member for member in proposed if member in view.members))


MUTANT = Mutant(
    name="expand-local-ack",
    breaks="every broker that may be elected has acked",
    parts=(BrokerParts(begin_alter=newcomers_do_not_count_yet),),
)
