"""Start offsets are not compared: a slave's epoch that the master does not know is taken for an older one.

For the slave's newest epoch the master's newest entry at or below it is looked up, and the lesser end of the two is the
point. The interleaving that keeps a dirty tail: A is master of epoch 1 up to 1000; B takes over with epoch 2 from 900,
writes up to 1000 for itself alone and is cut off; A returns, is elected with epoch 3 from 1000. B comes back: its epoch
2 is unknown to A, the floor is A's epoch 1, which ends at 1000, so the point is min(1000, 1000) = 1000, and B keeps its
own 900 to 1000 where A has other bytes under the same offsets. Broken rule: only an epoch whose start offset is equal as
well proves that the logs are equal up to there.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.mutants.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.epoch_file import EpochMap


def floor_point(own: EpochMap, own_end: int, theirs: EpochMap, their_end: int) -> int | None:
    newest = own.last
    if newest is None:
        return None
    known = [entry for entry in theirs.entries if entry.master_epoch <= newest.master_epoch]
    if not known:
        return None
    end = theirs.end_of(known[-1].master_epoch)
    return min(own_end, their_end if end is None else end)


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, truncation_point=floor_point)


MUTANT = Mutant(name="truncate-by-epoch-only", breaks="replicas hold the same bytes at the same offset", broker=_broker)
