"""Bytes that a process found in a file, made its own: written once more, so that its next fsync vouches for them.

After an fsync has failed the page cache may hold bytes that the device never got, and call them clean. A process that
ends because of the failure and starts again reads them like all others, and no fsync of its own would write them.
"""

from __future__ import annotations

from system_under_test.runtime.host import File

_PIECE_BYTES = 1 << 20


def write_again(file: File, start: int, end: int) -> None:
    """Write the bytes from `start` to before `end` where they stand; durable after the next fsync. Raises DiskError."""
    for offset in range(start, end, _PIECE_BYTES):
        file.write_at(offset, file.read_at(offset, min(_PIECE_BYTES, end - offset)))
