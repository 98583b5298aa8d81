"""How storage refuses. `StorageFailed` is final: a process that meets it must die, for its disk cannot be believed."""

from __future__ import annotations


class StorageError(Exception):
    """Anything storage refuses or fails at."""


class StorageFailed(StorageError):
    """The device failed under a write or an fsync; nothing may be acked any more: the process must end.

    After a failed fsync the pages may be gone while the next fsync succeeds, so trying again would lie.
    """


class StorageCorrupt(StorageError):
    """What is on disk contradicts itself in a way no crash explains; a human has to look."""


class LogTruncated(StorageError):
    """The bytes waited for were cut from the log before they became durable."""


class MessageTooLarge(StorageError):
    """The message cannot be encoded, or fits into no segment; nothing was written."""


class RecordInvalid(StorageError):
    """The bytes at this position are no whole, unharmed record."""


class BadOffset(StorageError):
    """Replicated bytes do not start where the log ends; nothing was written."""
