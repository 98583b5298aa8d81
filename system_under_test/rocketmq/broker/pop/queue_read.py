"""What a pop takes from one queue."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.storage.message_filter import MessageFilter
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
    wanted: MessageFilter | None,
    is_retried: bool,
    max_count: int,
    max_bytes: int,
) -> QueueRead | None:
    """None where there is nothing; without offsets where all that lay there has expired, or is not wanted. What comes
    again was wanted when it came first, whatever is wanted now.

    Raises DiskError.
    """
    _, topic, queue_id = key
    if is_retried:
        wanted = None
    looked_at = max_count if wanted is None else SCANNED
    found = store.get_messages(topic, queue_id, offset, looked_at, max_bytes)
    has_expired = found.status is GetStatus.OFFSET_TOO_SMALL
    if has_expired:
        offset = found.min_offset
        found = store.get_messages(topic, queue_id, offset, looked_at, max_bytes)
    if not found.messages and not has_expired:
        return None
    numbered = list(enumerate(found.messages, offset))
    next_offset = offset + len(numbered)
    if wanted is not None:
        matching = [(place, data) for place, data in numbered if wanted.matches(data)]
        numbered = matching[:max_count]
        if len(matching) > max_count:
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
