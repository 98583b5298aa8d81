"""A master that restarts goes on under its epoch, and has it start anew where its log ends now.

After an unclean stop that may be before what it acked. Slaves hold the epoch with another start, or more of it, and
cut what the master lacks. Broken rule: after an unclean stop a master gives its mastership up, and an epoch starts
once.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts, enter_epoch
from system_under_test.runtime.host import Host
from system_under_test.storage.epoch_file import EpochEntry, EpochFile, EpochMap


def never_gives_up(unclean_start: bool, master_epoch: int, registered_master_epoch: int) -> bool:
    return False


async def enter_again(host: Host, epochs: EpochFile, master_epoch: int, start_offset: int) -> EpochEntry:
    await epochs.replace(EpochMap(entry for entry in epochs.map if entry.master_epoch < master_epoch))
    return await enter_epoch(host, epochs, master_epoch, start_offset)


MUTANT = Mutant(
    name="same-epoch-remaster",
    breaks="an acked message outlives its master's restart",
    parts=(BrokerParts(gives_up=never_gives_up, enter_epoch=enter_again),),
)
