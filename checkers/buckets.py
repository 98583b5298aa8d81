"""How finely a history is cut for grouping."""

from __future__ import annotations

BUCKET_ROWS = 400_000
"""Rows of a history for each bucket; a kernel's memory is a small multiple of that, whatever the history's size."""


def bucket_count(rows: int) -> int:
    """Buckets for a history of so many rows; never depends on the machine, so that every engine cuts alike."""
    return max(1, -(-rows // BUCKET_ROWS))
