"""Slaves do not take over how far their master has delivered delayed messages.

Who becomes master then delivers all of them again, from the beginning or from when it was master last. Broken rule: a
new master begins where the last one is known to have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants.mutant import Mutant
from system_under_test.storage.delay_progress import DelayProgress, QueueEnd


class OwnOnly(DelayProgress):
    def take(self, offsets: Mapping[int, int], log_end: int, queue_end: QueueEnd) -> bool:
        return True


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, storage=replace(parts.storage, delay_progress=OwnOnly))


MUTANT = Mutant(name="slave-progress-old", breaks="what was delivered long ago is not delivered again", broker=_broker)
