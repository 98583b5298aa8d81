"""How a store is set up, and which of its decisions can be replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from system_under_test.runtime.host import Host
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.flush import AsyncFlush, AsyncFlushTimes, Flusher, GroupCommit


class FlushMode(Enum):
    SYNC = "SYNC_FLUSH"
    ASYNC = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Where and how a store keeps its files; all replicas of a group need the same `segment_bytes`."""

    directory: str = "store"
    segment_bytes: int = 1 << 30
    max_message_bytes: int = 4 << 20
    flush_mode: FlushMode = FlushMode.ASYNC
    async_flush: AsyncFlushTimes = field(default_factory=AsyncFlushTimes)
    checkpoint_interval_s: float = 3.0
    store_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def flusher_for(config: StoreConfig, log: CommitLog, host: Host) -> Flusher:
    """The healthy flush policy of a configuration."""
    if config.flush_mode is FlushMode.SYNC:
        return GroupCommit(log)
    return AsyncFlush(log, host.clock, config.async_flush)


def dispatch_limit(confirm_offset: int, max_offset: int) -> int:
    """How far consume queues may follow the log: consumers see nothing that could still be cut."""
    return min(confirm_offset, max_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageParts:
    """The decisions of a store; a planted bug replaces one of them."""

    flusher: Callable[[StoreConfig, CommitLog, Host], Flusher] = flusher_for
    dispatch_limit: Callable[[int, int], int] = dispatch_limit
