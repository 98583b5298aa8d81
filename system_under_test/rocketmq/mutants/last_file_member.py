"""A slave that began at its master's last file counts as one that holds everything.

It acknowledges what comes, catches up, joins the SyncStateSet, and is elected without what was acknowledged before its
log began. Broken rule: whoever may be elected holds all that its master holds.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants.mutant import Mutant


def _never(own_begin: int, master_begin: int) -> bool:
    return False


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, holds_a_part=_never)


MUTANT = Mutant(name="last-file-member", breaks="every member of the SyncStateSet holds what was acked", broker=_broker)
