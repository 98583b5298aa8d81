"""Messages about histories, which may hold values of any length."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")

LONGEST_BYTES = 1_700
"""No message is longer, whatever the values that it shows; with a path and a place before it it has less than 2 kB."""
_END_BYTES = 400
"""So much of the end of a message is kept, where it is cut."""


def shortened(message: T) -> T:
    """The message, cut in its middle if it is too long; what is no text as it is."""
    if not isinstance(message, str) or len(message) <= LONGEST_BYTES // 4:
        return message
    encoded = message.encode(errors="replace")
    if len(encoded) <= LONGEST_BYTES:
        return message
    first, last = encoded[: LONGEST_BYTES - _END_BYTES - 5], encoded[-_END_BYTES:]
    return f"{first.decode(errors='ignore')} … {last.decode(errors='ignore')}"  # type: ignore[return-value]
