"""Files of the log grow older by the wall clock.

A clock that jumps ahead makes all files old at once, and messages go that were to be kept. Broken rule: an acknowledged
message is there for as long as messages are kept.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.file_cleaner import FileCleaner
from system_under_test.storage.store_config import StorageParts


class CleanerByWallClock(FileCleaner):
    def now_ns(self) -> int:
        return self._host.clock.wall_ns()


MUTANT = Mutant(
    name="wall-clock-expiry",
    breaks="acked messages are there for as long as is promised",
    parts=(BrokerParts(storage=StorageParts(file_cleaner=CleanerByWallClock)),),
)
