"""Slaves do not take over how far their master has delivered delayed messages.

Who becomes master then delivers all of them again, from the beginning or from when it was master last. Broken rule: a
new master begins where the last one is known to have been.
"""

from __future__ import annotations

from collections.abc import Mapping

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.delay_progress import DelayProgress, QueueEnd
from system_under_test.storage.store_config import StorageParts


class OwnOnly(DelayProgress):
    def take(self, offsets: Mapping[int, int], log_end: int, queue_end: QueueEnd) -> bool:
        return True


MUTANT = Mutant(
    name="slave-progress-old",
    breaks="what was delivered long ago is not delivered again",
    parts=(BrokerParts(storage=StorageParts(delay_progress=OwnOnly)),),
)
