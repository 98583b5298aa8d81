"""The binary form of dbcop's first edition, `history.bincode`: little endian, lengths as integers of 64 bits.

id, nodes, variables, transactions, events: 8 bytes each; info, start, end: a length and so many bytes
sessions → transactions → events: a length before each sequence
event: whether it writes (1), variable (8), value (8), whether it succeeded (1); behind a transaction's events
whether that succeeded (1)
"""

from __future__ import annotations

import struct

from harness.jepsen.source import BrokenText
from harness.notations.sessions import Access, Sessions, SessionTransaction

_PARAMETERS = struct.Struct("<5Q")
_EVENT = struct.Struct("<?QQ?")
_LENGTH = struct.Struct("<Q")
LONGEST_TEXT = 1 << 16
_SMALL = 1 << 32


def looks_so(head: bytes) -> bool:
    """Whether it begins with five small numbers, of which all but the first count something, and a text."""
    at = _PARAMETERS.size
    if len(head) < at + _LENGTH.size:
        return False
    identity, *counts = _PARAMETERS.unpack_from(head)
    if identity >= _SMALL or not all(0 < count < _SMALL for count in counts):
        return False
    (length,) = _LENGTH.unpack_from(head, at)
    info = head[at + _LENGTH.size :][:length]
    return length <= LONGEST_TEXT and len(info) == length and info.isascii() and not any(byte < 9 for byte in info)


def parse(text: bytes) -> Sessions:
    """Raises BrokenText."""
    reader = _Reader(text)
    try:
        reader.at = _PARAMETERS.size
        for _ in range(3):
            length = reader.length(1)
            reader.at += length
        of = [[_transaction(reader) for _ in range(reader.length(_LENGTH.size + 1))] for _ in range(reader.length(8))]
    except struct.error:
        raise BrokenText(len(text), "the history ends too early") from None
    return Sessions(of).beginning_with(0)


def _transaction(reader: _Reader) -> SessionTransaction:
    found = SessionTransaction()
    for _ in range(reader.length(_EVENT.size)):
        writes, key, value, succeeded = _EVENT.unpack_from(reader.text, reader.at)
        reader.at += _EVENT.size
        if succeeded:
            found.accesses.append(Access(writes=writes, key=key, value=value))
    (found.committed,) = struct.unpack_from("<?", reader.text, reader.at)
    reader.at += 1
    return found


class _Reader:
    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0

    def length(self, of_bytes: int) -> int:
        """How many follow, each of at least so many bytes. Raises BrokenText where they cannot."""
        (length,) = _LENGTH.unpack_from(self.text, self.at)
        begun = self.at
        self.at += _LENGTH.size
        if length * of_bytes > len(self.text) - self.at:
            raise BrokenText(begun, f"a length of {length}, but only {len(self.text) - self.at} bytes are left")
        return int(length)
