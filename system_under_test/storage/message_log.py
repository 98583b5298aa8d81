"""The log beneath a store, as far as the store only reads it and puts messages at its end.

A `CommitLog` is one that the store itself cuts, and that replication writes by way of the store. Any other one is
replicated, cut and made durable by somebody else, who tells the store by `MessageStore.log_was_cut`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class MessageLog(Protocol):
    """Messages by offsets that ascend, but need not be dense. Reading and writing raises StorageFailed."""

    @property
    def failed(self) -> bool:
        """The device failed; nothing is accepted or vouched for any more."""

    @property
    def beginnings(self) -> int:
        """What a checkpoint says is true of the same beginning of the log only."""

    @property
    def min_offset(self) -> int: ...

    @property
    def max_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int:
        """Everything before it survives a loss of power."""

    @property
    def start_of_last_file(self) -> int: ...

    def segment_starts(self) -> tuple[int, ...]: ...

    def load(self, checkpoint: tuple[int, int] | None) -> None:
        """See `CommitLog.load`."""

    async def recover(self, checked_offset: int) -> None:
        """See `CommitLog.recover`."""

    async def flush(self) -> int:
        """Make everything written before the call durable; returns the flushed offset."""

    def fits(self, size: int) -> bool:
        """Whether it could ever take messages of so many bytes together."""

    def reserve(self, size: int) -> int:
        """The offset at which messages of `size` bytes will stand. Raises MessageTooLarge, DiskFull."""

    def append(self, record: bytes) -> int:
        """Append messages, encoded for the offset that `reserve` gave; returns the log's new end. Raises DiskFull, and
        nothing was written."""

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` on."""

    def goes_on(self, offset: int) -> bool:
        """Whether the message that stands here is not the last of its batch."""

    def records(self, start: int, end: int) -> Iterator[tuple[bytes, int]]:
        """(bytes, position in them) of the messages within [start, end), in order; `start` is the log's beginning, or
        the end of a message behind which no other one of its batch stands."""
