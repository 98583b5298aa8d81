"""A message as it stands in a queue's file; big-endian.

    size:4 | CRC:4 | number:8 | body

`size` is the body's. The CRC-32 covers number and body: a message that stands where another one should is found as one
that is harmed is.
"""

from __future__ import annotations

import struct
from zlib import crc32

from system_under_test.storage.errors import RecordInvalid

_HEAD = struct.Struct(">IIQ")
_NUMBER = struct.Struct(">Q")
HEAD_BYTES = _HEAD.size


def encode_record(number: int, body: bytes) -> bytes:
    return _HEAD.pack(len(body), crc32(body, crc32(_NUMBER.pack(number))), number) + body


def decode_record(data: bytes, number: int) -> bytes:
    """The body of message `number`. Raises RecordInvalid unless these bytes are its record, whole and unharmed."""
    if len(data) < HEAD_BYTES:
        raise RecordInvalid("it is cut")
    size, crc, own_number = _HEAD.unpack_from(data)
    body = data[HEAD_BYTES:]
    if own_number != number or len(body) != size or crc32(body, crc32(data[8:HEAD_BYTES])) != crc:
        raise RecordInvalid("it is harmed, or another message stands in its place")
    return body


def record_bytes(data: bytes) -> int:
    """How long the record is with which `data` begins; 0 where they are less than its head."""
    return HEAD_BYTES + _HEAD.unpack_from(data)[0] if len(data) >= HEAD_BYTES else 0


def record_ends(data: bytes, first: int) -> list[int]:
    """Where in `data` the records of message `first` and those after it end, as far as they are whole; whether they are
    unharmed is not looked at."""
    ends: list[int] = []
    at, last_head = 0, len(data) - HEAD_BYTES
    while at <= last_head:
        size, _, number = _HEAD.unpack_from(data, at)
        at += HEAD_BYTES + size
        if number != first + len(ends) or at > len(data):
            break
        ends.append(at)
    return ends
