"""Records of a bookie's journal, each checked by itself and chained to the one before; big-endian.

    magic:4 | body size:4 | kind:1 | durable:8 | before:4 | checksum:4 | body

The checksum covers the record's position in the journal, the fields and the body; `before` is that of the record before
it. `durable` claims that everything before that position was durable when this record was written. A loss of power
leaves of what was not durable any pieces, so whole records may stand behind harmed ones: it is this claim that tells
rot from a torn tail.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from zlib import crc32

from system_under_test.bookkeeper.entry import HEAD_BYTES as ENTRY_HEAD_BYTES
from system_under_test.bookkeeper.entry import MAX_PAYLOAD_BYTES
from system_under_test.storage.errors import RecordInvalid

MAGIC: Final = b"\xb0\x0cJ1"
_HEAD = struct.Struct(">4sIBQII")
_COVERED = struct.Struct(">QIBQI")
HEAD_BYTES = _HEAD.size
MAX_BODY_BYTES = ENTRY_HEAD_BYTES + MAX_PAYLOAD_BYTES

_LEDGER = struct.Struct(">q")
_LAC = struct.Struct(">qq")


class Kind(IntEnum):
    START = 1
    """A process began; body: 1 if it syncs the journal before it acknowledges, otherwise 0."""
    ADD = 2
    """Body: an entry."""
    FENCE = 3
    """Body: a ledger, as of the next two."""
    LIMBO = 4
    LEFT_LIMBO = 5
    LAC = 6
    """Body: a ledger and its explicit LAC."""


_KINDS: Final = {int(kind): kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Record:
    kind: Kind
    body: bytes
    durable: int
    before: int
    checksum: int

    @property
    def size(self) -> int:
        return HEAD_BYTES + len(self.body)


def encode_record(kind: Kind, body: bytes, position: int, durable: int, before: int) -> tuple[bytes, int]:
    """Its bytes, and its checksum."""
    checksum = crc32(body, crc32(_COVERED.pack(position, len(body), kind, durable, before)))
    return _HEAD.pack(MAGIC, len(body), kind, durable, before, checksum) + body, checksum


def decode_record(buffer: bytes, at: int, position: int) -> Record:
    """The record that begins at `at`, and stands at this position of the journal. Raises RecordInvalid unless it is
    whole and unharmed."""
    if len(buffer) - at < HEAD_BYTES:
        raise RecordInvalid("the head of a record is cut")
    magic, size, kind, durable, before, checksum = _HEAD.unpack_from(buffer, at)
    if magic != MAGIC or size > MAX_BODY_BYTES or kind not in _KINDS:
        raise RecordInvalid("no record begins here")
    body = bytes(buffer[at + HEAD_BYTES : at + HEAD_BYTES + size])
    covered = _COVERED.pack(position, size, kind, durable, before)
    if len(body) != size or crc32(body, crc32(covered)) != checksum:
        raise RecordInvalid("a record is cut or harmed")
    return Record(_KINDS[kind], body, durable, before, checksum)


def greatest_claim(buffer: bytes, at: int, position: int) -> int:
    """Of all whole records in `buffer` from `at` on, of which the first byte stands at `position`: up to where the
    journal was durable at least; 0 where there is none."""
    greatest, found = 0, buffer.find(MAGIC, at)
    while found >= 0:
        try:
            record = decode_record(buffer, found, position + found)
        except RecordInvalid:
            found = buffer.find(MAGIC, found + 1)
        else:
            greatest = max(greatest, record.durable)
            found = buffer.find(MAGIC, found + record.size)
    return greatest


def ledger_body(ledger: int) -> bytes:
    return _LEDGER.pack(ledger)


def ledger_of(body: bytes) -> int:
    """Raises RecordInvalid."""
    if len(body) != _LEDGER.size:
        raise RecordInvalid(f"{len(body)} bytes name no ledger")
    ledger: int = _LEDGER.unpack(body)[0]
    return ledger


def lac_body(ledger: int, lac: int) -> bytes:
    return _LAC.pack(ledger, lac)


def lac_of(body: bytes) -> tuple[int, int]:
    """Ledger and LAC. Raises RecordInvalid."""
    if len(body) != _LAC.size:
        raise RecordInvalid(f"{len(body)} bytes are no explicit LAC")
    ledger, lac = _LAC.unpack(body)
    return ledger, lac
