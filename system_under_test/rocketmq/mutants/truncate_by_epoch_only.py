"""Start offsets are not compared: epochs are matched by number alone, and a smaller number is near enough.

The master's newest epoch is looked up at the slave, the slave's newest entry at or below it is taken for the same,
and the lesser of the two ends is the point. The interleaving that keeps a dirty tail: A is master of epoch 1 up to
1000, its slaves have 900. A is cut off; B takes over with epoch 2 from 900 and writes on to 1300. A returns: its newest
entry at or below 2 is 1:0, which ends at 1000; B's epoch 2 ends at 1300; so A keeps all its 1000, of which 900 to 1000
are bytes that nobody acked, under offsets where B has others. Broken rule: only an epoch whose number and start are
both equal proves that two logs are equal up to the lesser end.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.epoch_file import EpochMap


def point_by_epoch_only(own: EpochMap, own_end: int, theirs: EpochMap, their_end: int) -> int | None:
    newest = theirs.last
    if newest is None:
        return None
    matched = [entry for entry in own.entries if entry.master_epoch <= newest.master_epoch]
    if not matched:
        return None
    end = own.end_of(matched[-1].master_epoch)
    return min(own_end if end is None else end, their_end)


MUTANT = Mutant(
    name="truncate-by-epoch-only",
    breaks="replicas hold the same bytes at the same offset",
    parts=(BrokerParts(truncation_point=point_by_epoch_only),),
)
