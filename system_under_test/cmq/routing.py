"""Which group a queue belongs to: for ever the same, so that every client can know it."""

from __future__ import annotations

from zlib import crc32


def group_of(queue: str, groups: int) -> int:
    """One of the groups 1 to `groups`."""
    return crc32(queue.encode()) % groups + 1
