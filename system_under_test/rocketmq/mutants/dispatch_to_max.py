"""Dispatch, and so every reader, goes on past the confirm offset to the end of the log.

A message that was written at the master and reached nobody else is read, the master is deposed, the message is cut
away when it returns: a consumer has read what never was. Broken rule: consumers see nothing beyond the confirm offset.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.store_config import StorageParts


def _own_max(confirm_offset: int, max_offset: int) -> int:
    return max_offset


MUTANT = Mutant(
    name="dispatch-to-max",
    breaks="consumers never read what may still be cut",
    parts=(BrokerParts(storage=StorageParts(dispatch_limit=_own_max)),),
)
