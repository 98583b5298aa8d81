"""A cut of the log leaves the progress of timers as it was.

Messages that come to stand at the places of those that were cut off are taken for delivered, and never come out. Broken
rule: progress reaches no further than the queue does.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.store_config import StorageParts
from system_under_test.storage.timer_progress import QueueEnd, TimerProgress


class KeptProgress(TimerProgress):
    def cut(self, log_end: int, queue_end: QueueEnd) -> None:
        pass


MUTANT = Mutant(
    name="timer-progress-kept",
    breaks="a timed message that was acked is delivered",
    parts=(BrokerParts(storage=StorageParts(timer_progress=KeptProgress)),),
)
