"""Acks before the fsync although sync flush is on.

The flush is asked for and happens a little later, as a cache that lies about it would do; nobody waits for it. A loss
of power in between takes messages that were answered as durable. Broken rule: under sync flush a put is answered
after the fsync that covers it.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import Host
from system_under_test.storage.flush import AsyncFlush, Log
from system_under_test.storage.message_store import MessageStore, StoreConfig
from system_under_test.storage.store_config import StorageParts


class LyingFlush(AsyncFlush):
    """The asynchronous policy, telling everybody who asks that the bytes are durable."""

    async def wait(self, offset: int) -> None:
        return


def _lying_flusher(config: StoreConfig, log: Log, host: Host) -> LyingFlush:
    return LyingFlush(log, host, config.async_flush)


def _written_counts_as_durable(store: MessageStore, config: BrokerConfig) -> int:
    return store.max_offset


MUTANT = Mutant(
    name="flush-lie",
    breaks="acked messages survive a loss of power under sync flush",
    parts=(BrokerParts(storage=StorageParts(flusher=_lying_flusher), own_acked_offset=_written_counts_as_durable),),
)
