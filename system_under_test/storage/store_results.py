"""What a store answers to puts and reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResult:
    """Where a message went: [offset, end_offset) in the log, `queue_offset` in its queue."""

    offset: int
    end_offset: int
    queue_offset: int
    size: int
    store_timestamp_ms: int


class Boundary(Enum):
    """Which of two neighbours is meant where a time lies between them."""

    LOWER = "lower"
    UPPER = "upper"


class GetStatus(Enum):
    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    """There are messages, but none so far that the reader wants: it reads on from `next_offset`."""
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetResult:
    """Encoded messages in the order of their queue offsets, which are consecutive unless the reader wants only some of
    them, and where to read next."""

    status: GetStatus
    messages: tuple[bytes, ...] = ()
    next_offset: int
    min_offset: int
    max_offset: int
    behind_bytes: int = 0
    """So much of the log follows the last of these messages."""


def place_of_read(queue_offset: int, least: int, end: int) -> tuple[GetStatus, int]:
    """What a read at `queue_offset` of a queue [least, end) meets, and where to read on if nothing is found."""
    if end == 0:
        return GetStatus.NO_MESSAGE_IN_QUEUE, end
    if queue_offset < least:
        return GetStatus.OFFSET_TOO_SMALL, least
    if queue_offset == end:
        return GetStatus.OFFSET_OVERFLOW_ONE, end
    if queue_offset > end:
        return GetStatus.OFFSET_OVERFLOW_BADLY, end
    return GetStatus.FOUND, queue_offset
