"""A slave takes the master's confirm offset as it is, however far its own log reaches.

One that lags then holds an offset beyond its own end for confirmed, and as master shows whatever it writes there at
once. Broken rule: a slave's confirm offset is the lesser of the master's and its own log's end.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.store_config import StorageParts


def as_in_the_header(current: int, header_confirm_offset: int, own_max_offset: int) -> int:
    return max(current, header_confirm_offset)


def as_announced(offset: int, log_end: int) -> int:
    return offset


MUTANT = Mutant(
    name="confirm-without-min",
    breaks="consumers never read what may still be cut",
    parts=(BrokerParts(slave_confirm_offset=as_in_the_header, storage=StorageParts(confirmable=as_announced)),),
)
