"""Of the two ends of the epoch that both logs hold, the greater one is taken for the point where they part.

A log that ends beyond what the master has of the epoch keeps its tail, under offsets where the master has, or will
have, other bytes. Broken rule: two logs are known to be equal up to the lesser end.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.epoch_file import EpochMap


def point_at_the_greater_end(own: EpochMap, own_end: int, theirs: EpochMap, their_end: int) -> int | None:
    starts = dict(theirs.entries)
    end = own_end
    for entry in reversed(own.entries):
        if starts.get(entry.master_epoch) == entry.start_offset:
            their_entry_end = theirs.end_of(entry.master_epoch)
            return max(end, their_end if their_entry_end is None else their_entry_end)
        end = entry.start_offset
    return None


MUTANT = Mutant(
    name="truncate-to-max",
    breaks="replicas hold the same bytes at the same offset",
    parts=(BrokerParts(truncation_point=point_at_the_greater_end),),
)
