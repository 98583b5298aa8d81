"""What this process does with memory that it has freed."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Of glibc's malloc.h."""
MOST_KEPT_BYTES = 1 << 30
LARGEST_KEPT_BYTES = 1 << 25
"""The largest array that glibc takes from its heap instead of mapping it separately."""


def keep_freed_memory() -> None:
    """Arrays of up to LARGEST_KEPT_BYTES are made of memory that others were, instead of memory that the kernel fills
    with zeros first: a check makes and drops thousands, and each page that is touched for the first time takes longer
    than what is done with it. One heap serves all threads, so that what one of them freed another one gets; threads
    that are there before may have heaps of their own, so this comes first.

    Where the C library is another one than glibc, nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_ARENA_MAX, 1)
    mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
    mallopt(M_TRIM_THRESHOLD, MOST_KEPT_BYTES)
