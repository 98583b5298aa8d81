"""An ack beyond the master's own log is believed.

Whatever comes on the port for slaves, under a member's id, acknowledges all that the master will ever write. Broken
rule: a slave holds only what its master has sent it.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts


def _if_it_grows(offset: int, acked_offset: int, max_offset: int) -> bool:
    return acked_offset <= offset


MUTANT = Mutant(
    name="bogus-ack",
    breaks="every member of the SyncStateSet holds what it acked",
    parts=(BrokerParts(is_possible_ack=_if_it_grows),),
)
