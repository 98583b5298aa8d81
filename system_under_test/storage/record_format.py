"""How a log tells its records apart, and the blanks with which it fills its segments."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

_BLANK = struct.Struct(">iI")
_BLANK_MAGIC = 0xCBD43194
BLANK_BYTES = _BLANK.size
"""The least that stays free at the end of a segment: the blank's own size and magic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat:
    """Each function is given bytes, and the position in them at which a record begins."""

    head_bytes: int
    """So much of a record says how long it is, and whether its batch goes on; at least a blank's `BLANK_BYTES`."""
    size: Callable[[bytes, int], int]
    """What the record's head claims; 0 if no record begins here, -1 if there are less than `BLANK_BYTES`."""
    goes_on: Callable[[bytes, int], bool]
    """Whether the next record belongs to the same batch, so that both stay or go together."""
    check: Callable[[bytes, int, int], int]
    """The size of a record that is whole, unharmed, and belongs at this offset of the log. Raises RecordInvalid."""


def encode_blank(size: int) -> bytes:
    """What fills the last `size` bytes of a segment when the next record does not fit: header, then zeros."""
    return _BLANK.pack(size, _BLANK_MAGIC) + bytes(size - BLANK_BYTES)


def blank_size(buffer: bytes, position: int) -> int:
    """The size a blank's header at `position` claims, or 0 if no blank starts there."""
    if len(buffer) - position < BLANK_BYTES:
        return 0
    size, magic = _BLANK.unpack_from(buffer, position)
    return size if magic == _BLANK_MAGIC and size >= BLANK_BYTES else 0
