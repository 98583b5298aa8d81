"""A slave that began at its master's last file counts as one that holds everything.

It acknowledges what comes, catches up, joins the SyncStateSet, and is elected without what was acknowledged before its
log began. Broken rule: every broker that may be elected holds all that its master holds.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts


def _never(own_begin: int, master_begin: int) -> bool:
    return False


MUTANT = Mutant(
    name="last-file-member",
    breaks="every member of the SyncStateSet holds what was acked",
    parts=(BrokerParts(holds_a_part=_never),),
)
