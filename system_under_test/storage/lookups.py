"""Questions about single messages: by a key, by their place in the log, by the time at which they were stored.

What is found is what readers of queues may see, and nothing else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from system_under_test.storage.consume_queue import ConsumeQueue, ConsumeQueues
from system_under_test.storage.key_index import KeyIndex
from system_under_test.storage.message import (
    HEADER_BYTES,
    MessageInvalid,
    check_message,
    decode_header,
    peek_size,
    store_timestamp_ms,
)
from system_under_test.storage.message_log import MessageLog
from system_under_test.storage.record_format import BLANK_BYTES
from system_under_test.storage.store_results import Boundary

MAX_LOOKED_AT: Final = 10_000
"""Messages with one key, or with keys of one hash, from the newest on: older ones than these are not found."""


class Lookups:
    """`shown_offset` tells how far readers see the log, `forgotten` before which offset a topic's messages are gone."""

    def __init__(
        self,
        log: MessageLog,
        queues: ConsumeQueues,
        index: KeyIndex,
        shown_offset: Callable[[], int],
        forgotten: Callable[[], Mapping[str, int]],
    ) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._shown_offset = shown_offset
        self._forgotten = forgotten

    @property
    def last_indexed(self) -> tuple[int, int]:
        """When the newest message with a key was stored, in ms, and where it stands; zeros if there is none."""
        return self._index.last_update

    def by_key(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int, max_bytes: int = 1 << 20
    ) -> tuple[bytes, ...]:
        """The newest messages with this key that were stored within these times (both included), in the log's order.

        At most `max_count`, and more than one only within `max_bytes`. Raises DiskError.
        """
        found: list[bytes] = []
        total = 0
        for offset in islice(self._index.find(topic, key), MAX_LOOKED_AT):
            message = self.at(offset)
            if message is None or not begin_ms <= store_timestamp_ms(message, 0) <= end_ms:
                continue
            header = decode_header(message, 0)
            if header.topic != topic or key not in header.keys:
                continue
            total += len(message)
            if len(found) == max_count or (found and total > max_bytes):
                break
            found.append(message)
        return tuple(reversed(found))

    def at(self, offset: int) -> bytes | None:
        """The message that stands here in the log, if readers may see it. Raises DiskError."""
        size = peek_size(self._log.read(offset, BLANK_BYTES), 0)
        if size <= 0 or offset + size > self._shown_offset():
            return None
        message = self._log.read(offset, size)
        try:
            check_message(message, 0, offset)
            topic = decode_header(message, 0).topic
        except (MessageInvalid, UnicodeDecodeError):
            return None
        return message if offset >= self._forgotten().get(topic, 0) else None

    def offset_at_time(self, topic: str, queue_id: int, time_ms: int, boundary: Boundary) -> int:
        """The queue offset of the first message stored at this time or after it (without any, the end of the queue), or
        of the last one stored at it or before (without any, the queue's first).

        Times within a queue are taken for ascending. Raises DiskError.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return 0
        is_lower = boundary is Boundary.LOWER

        def is_behind(queue_offset: int) -> bool:
            stored_ms = self._stored_at(queue, queue_offset)
            return stored_ms is not None and (stored_ms >= time_ms if is_lower else stored_ms > time_ms)

        offset = queue.min_offset + bisect_left(range(queue.min_offset, queue.max_offset), True, key=is_behind)
        return offset if is_lower else max(queue.min_offset, offset - 1)

    def first_stored(self, topic: str, queue_id: int) -> int | None:
        """When the queue's first message was stored, in ms; None if it has none. Raises DiskError."""
        queue = self._queues.get(topic, queue_id)
        if queue is None or queue.min_offset == queue.max_offset:
            return None
        return self._stored_at(queue, queue.min_offset)

    def _stored_at(self, queue: ConsumeQueue, queue_offset: int) -> int | None:
        header = self._log.read(queue.entry(queue_offset).physical_offset, HEADER_BYTES)
        return store_timestamp_ms(header, 0) if len(header) == HEADER_BYTES else None
