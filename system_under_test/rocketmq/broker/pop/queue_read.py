"""What a pop takes from one queue."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.rocketmq.broker.pop.again import is_wanted
from system_under_test.storage.message import MessageInvalid, decode_message
from system_under_test.storage.message_store import GetStatus, MessageStore

SCANNED = 1024
"""So many messages are looked at for those that are wanted."""

QueueKey = tuple[str, str, int]
"""(group, topic, queue)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRead:
    """Messages at `offsets`, of all that lie between `start_offset` and `next_offset`; behind it there are `rest`."""

    key: QueueKey
    start_offset: int
    next_offset: int
    offsets: tuple[int, ...]
    messages: tuple[bytes, ...]
    is_retried: bool
    rest: int
    times: tuple[int, ...] = ()
    """How often each came before, where they are popped in order."""


def read_queue(
    store: MessageStore,
    key: QueueKey,
    offset: int,
    *,
    tags: tuple[str, ...],
    is_retried: bool,
    max_count: int,
    max_bytes: int,
) -> QueueRead | None:
    """None where there is nothing. What comes again was wanted when it came first, whatever is wanted now.

    Raises DiskError.
    """
    _, topic, queue_id = key
    is_filtered = bool(tags) and not is_retried
    looked_at = SCANNED if is_filtered else max_count
    found = store.get_messages(topic, queue_id, offset, looked_at, max_bytes)
    if found.status is GetStatus.OFFSET_TOO_SMALL:
        offset = found.min_offset
        found = store.get_messages(topic, queue_id, offset, looked_at, max_bytes)
    if not found.messages:
        return None
    numbered = list(enumerate(found.messages, offset))
    next_offset = offset + len(numbered)
    if is_filtered:
        wanted = [(place, data) for place, data in numbered if _is_wanted(data, tags)]
        numbered = wanted[:max_count]
        if len(wanted) > max_count:
            next_offset = numbered[-1][0] + 1
    return QueueRead(
        key=key,
        start_offset=offset,
        next_offset=next_offset,
        offsets=tuple(place for place, _ in numbered),
        messages=tuple(data for _, data in numbered),
        is_retried=is_retried,
        rest=found.max_offset - next_offset,
    )


def _is_wanted(data: bytes, tags: tuple[str, ...]) -> bool:
    try:
        return is_wanted(decode_message(data, 0), tags)
    except MessageInvalid:
        return True  # rotten: whoever reads it finds that out, and nobody passes it over
