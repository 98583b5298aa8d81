"""A batch goes on beyond the end of its epoch, under the header of the epoch it began in.

The slave learns of the next epoch from the next header; until then, and for good if none comes, it counts bytes of the
next master as those of the one before. Broken rule: a batch ends with its epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.epoch_file import EpochEntry


def end_of_the_log(entries: Sequence[EpochEntry], position: int, max_offset: int) -> int:
    return max_offset


MUTANT = Mutant(
    name="cross-epoch-batch",
    breaks="an epoch's bytes are of one master",
    parts=(BrokerParts(batch_end=end_of_the_log),),
)
