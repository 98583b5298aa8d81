"""How a store is set up, and which of its decisions can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from system_under_test.runtime.host import Disk, Host
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.consume_queue import ConsumeQueue
from system_under_test.storage.consumer_offsets import ConsumerOffsets
from system_under_test.storage.delay_progress import DelayProgress
from system_under_test.storage.epoch_file import EpochFile
from system_under_test.storage.file_cleaner import CleaningRules, FileCleaner
from system_under_test.storage.flush import AsyncFlush, AsyncFlushTimes, Flusher, GroupCommit, Log
from system_under_test.storage.key_index import KeyIndex
from system_under_test.storage.message import MESSAGES, MessageHeader
from system_under_test.storage.message_filter import MessageFilter, select_messages
from system_under_test.storage.record_format import RecordFormat
from system_under_test.storage.timer_progress import TimerProgress


class FlushMode(Enum):
    SYNC = "SYNC_FLUSH"
    ASYNC = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Where and how a store keeps its files; all replicas of a group need the same `segment_bytes`."""

    directory: str = "store"
    segment_bytes: int = 1 << 30
    flush_mode: FlushMode = FlushMode.ASYNC
    async_flush: AsyncFlushTimes = field(default_factory=AsyncFlushTimes)
    checkpoint_interval_s: float = 3.0
    index_slots: int = 1 << 16
    index_entries: int = 1 << 18
    """How many entries each file of the index of keys has."""
    reads_uncommitted: bool = False
    """Readers see the log to its end, also what may still be cut."""
    cleaning: CleaningRules | None = None
    """Says when files are deleted; None: none ever is."""
    store_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def flusher_for(config: StoreConfig, log: Log, host: Host) -> Flusher:
    """The healthy flush policy of a configuration."""
    if config.flush_mode is FlushMode.SYNC:
        return GroupCommit(log, host)
    return AsyncFlush(log, host, config.async_flush)


def dispatch_limit(confirm_offset: int, max_offset: int) -> int:
    """How far consume queues may follow the log: consumers see nothing that could still be cut."""
    return min(confirm_offset, max_offset)


def confirmable(offset: int, log_end: int) -> int:
    """How much of a confirm offset that was announced is taken over by a log that ends at `log_end`."""
    return min(offset, log_end)


def dispatch_resumes_at(queues_end: int, log_end: int) -> int:
    """From where a recovered log that ends at `log_end` is dispatched: consume queues hold all before `queues_end`."""
    return queues_end


def next_queue_offsets(
    queues: Iterable[ConsumeQueue], undispatched: Iterable[MessageHeader]
) -> dict[tuple[str, int], int]:
    """(topic, queue id) → the queue offset of the next message; those not dispatched yet have theirs already."""
    table = {(queue.topic, queue.queue_id): queue.max_offset for queue in queues}
    for header in undispatched:
        table[header.topic, header.queue_id] = header.queue_offset + 1
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageParts:
    """The decisions of a store; a planted bug replaces one of them."""

    flusher: Callable[[StoreConfig, Log, Host], Flusher] = flusher_for
    dispatch_limit: Callable[[int, int], int] = dispatch_limit
    confirmable: Callable[[int, int], int] = confirmable
    dispatch_resumes_at: Callable[[int, int], int] = dispatch_resumes_at
    next_queue_offsets: Callable[[Iterable[ConsumeQueue], Iterable[MessageHeader]], dict[tuple[str, int], int]] = (
        next_queue_offsets
    )
    select_messages: Callable[
        [Iterable[tuple[int, int, int]], Callable[[int, int], bytes], int, int, MessageFilter | None],
        tuple[list[bytes], int],
    ] = select_messages
    commit_log: type[CommitLog] = CommitLog
    record_format: RecordFormat = MESSAGES
    consume_queue: Callable[[str, int], ConsumeQueue] = ConsumeQueue
    key_index: Callable[[Disk, str, int, int], KeyIndex] = KeyIndex
    consumer_offsets: Callable[[Disk, str], ConsumerOffsets] = ConsumerOffsets
    delay_progress: Callable[[Disk, str], DelayProgress] = DelayProgress
    timer_progress: Callable[[Disk, str], TimerProgress] = TimerProgress
    epoch_file: Callable[[Disk, str], EpochFile] = EpochFile
    file_cleaner: type[FileCleaner] = FileCleaner
