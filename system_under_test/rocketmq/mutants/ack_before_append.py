"""A slave acks what it received and appends it later, in batches.

Between the ack and the append the bytes are in memory only: when the slave's process dies, or it changes its role, they
are gone, and the producer already has an acknowledgement that all of the SyncStateSet holds them. Broken rule: bytes
are acked after they are appended.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore

APPEND_INTERVAL_S = 0.1


class AckThenAppend:
    """Holds what was received until the next interval; what is held when the connection ends is lost."""

    def __init__(self, host: Host, store: MessageStore, config: BrokerConfig) -> None:
        self._host = host
        self._store = store
        self._held: list[tuple[int, bytes]] = []
        self._end_offset = store.max_offset
        self._task = host.spawn(self._append_often(), "late appends")

    @property
    def end_offset(self) -> int:
        return self._end_offset

    async def append(self, offset: int, data: bytes) -> int:
        self._held.append((offset, data))
        self._end_offset = offset + len(data)
        return self._end_offset

    def close(self) -> None:
        self._task.cancel()

    async def _append_often(self) -> None:
        while True:
            await self._host.clock.sleep(APPEND_INTERVAL_S)
            for offset, data in self._held:
                self._store.append_replicated(offset, data)
            self._held.clear()


MUTANT = Mutant(
    name="ack-before-append",
    breaks="every member of the SyncStateSet holds what it acked",
    parts=(BrokerParts(appender=AckThenAppend),),
)
