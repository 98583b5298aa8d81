"""Checksums of a log by pieces of fixed size, so that the logs of replicas can be compared without their bytes.

A piece is reported as soon as it is full, by the broker that filled it: a master message by message, a slave with bytes
as they came. The bounds are the same everywhere, multiples of `piece_bytes`. A log that was cut, or found at a start,
goes on within a piece, so what is left of that one is read again. One whose beginning is gone is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

PIECE_BYTES = 4096


class LogDigest:
    """`report(start, end, checksum)` is called for each piece that was filled."""

    __slots__ = ("_checksum", "_end", "_piece_bytes", "_report", "_whole")

    def __init__(self, report: Callable[[int, int, int], None], piece_bytes: int = PIECE_BYTES) -> None:
        self._report = report
        self._piece_bytes = piece_bytes
        self._end = piece_bytes
        self._checksum = 0
        self._whole = True

    def start_at(self, offset: int, read: Callable[[int, int], bytes]) -> None:
        """The log ends at `offset`; `read(offset, length)` gives bytes of it, fewer where it has no more at once."""
        start = offset - offset % self._piece_bytes
        self._end = start + self._piece_bytes
        self._checksum = 0
        while start < offset and (data := read(start, offset - start)):
            self._checksum = crc32(data, self._checksum)
            start += len(data)
        self._whole = start == offset

    def appended(self, offset: int, data: bytes) -> None:
        """Bytes were written at `offset`, the end of the log."""
        room = self._end - offset
        if len(data) < room:
            self._checksum = crc32(data, self._checksum)
            return
        position = 0
        while len(data) - position >= room:
            checksum = crc32(data[position : position + room], self._checksum)
            if self._whole:
                self._report(self._end - self._piece_bytes, self._end, checksum)
            position += room
            room = self._piece_bytes
            self._end += room
            self._checksum = 0
            self._whole = True
        self._checksum = crc32(data[position:])
