"""A master whose epoch starts where the newest one in its epoch file starts records nothing.

It writes under the older epoch, as though it were that one's master, and what that one wrote and nobody copied cannot
be told from its own. Broken rule: a master's epoch is recorded also when the one before it holds no bytes.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts, enter_epoch
from system_under_test.runtime.host import Host
from system_under_test.storage.epoch_file import EpochEntry, EpochFile


async def enter_only_with_bytes_between(
    host: Host, epochs: EpochFile, master_epoch: int, start_offset: int
) -> EpochEntry:
    newest = epochs.map.last
    if newest is not None and start_offset <= newest.start_offset:
        return newest
    return await enter_epoch(host, epochs, master_epoch, start_offset)


MUTANT = Mutant(
    name="equal-start-rejected",
    breaks="an epoch's bytes are of one master",
    parts=(BrokerParts(enter_epoch=enter_only_with_bytes_between),),
)
