"""What becomes of the bytes that a master sent: where they are written, and how far they may be acked."""

from __future__ import annotations

from typing import Protocol

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore


class Appender(Protocol):
    """Takes what the master sent, in order, and says what may be acked."""

    @property
    def end_offset(self) -> int:
        """Where the next bytes have to begin; 0 for an empty log, which may begin anywhere."""
        ...

    async def append(self, offset: int, data: bytes) -> int:
        """The offset to ack."""
        ...

    def close(self) -> None: ...


class AppendThenAck:
    """Written first, durable as well where so configured, acked then."""

    def __init__(self, host: Host, store: MessageStore, config: BrokerConfig) -> None:
        self._store = store
        self._flush = config.ack_after_flush
        self._flush_wait_s = config.flush_wait_s

    @property
    def end_offset(self) -> int:
        return self._store.max_offset

    async def append(self, offset: int, data: bytes) -> int:
        store = self._store
        store.append_replicated(offset, data)
        if self._flush:
            await store.flush_to(store.max_offset, self._flush_wait_s)
        return store.max_offset

    def close(self) -> None:
        pass
