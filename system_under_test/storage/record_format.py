"""How a log tells its records apart, and the blanks with which it fills its segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BLANK_BYTES = 8
"""The least that stays free at the end of a segment: the blank's own size and magic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat:
    """Functions of bytes and a position in them are about what begins there."""

    head_bytes: int
    """So much of a record says how long it is, and whether its batch goes on; at least a blank's `BLANK_BYTES`."""
    size: Callable[[bytes, int], int]
    """What the record's head claims; 0 if no record begins here, -1 if there are less than `BLANK_BYTES`."""
    goes_on: Callable[[bytes, int], bool]
    """Whether the next record belongs to the same batch, so that both stay or go together."""
    check: Callable[[bytes, int, int], int]
    """The size of a record that is whole, unharmed, and belongs at this offset of the log. Raises RecordInvalid."""
    encode_blank: Callable[[int], bytes]
    """What fills the last bytes of a segment, so many, when the next record does not fit: header, then zeros."""
    blank_size: Callable[[bytes, int], int]
    """What the blank's header claims; 0 if no blank begins here, or there are less than `BLANK_BYTES`."""
