"""The messages of an entry, as its payload: `count:2`, then `length:4 bytes` for each; big-endian.

One entry holds what a client sends at once, so that either all of it is in the log or nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from system_under_test.bookkeeper.partition.position import MOST_MESSAGES

_COUNT = struct.Struct(">H")
_LENGTH = struct.Struct(">I")


class MalformedPayload(ValueError):
    """Bytes that are no messages of an entry."""


def encode_messages(messages: Sequence[bytes]) -> bytes:
    """Raises ValueError for none, or for more than an entry has places for."""
    if not 1 <= len(messages) <= MOST_MESSAGES:
        raise ValueError(f"an entry takes 1 to {MOST_MESSAGES} messages, got {len(messages)}")
    lengths_and_messages = (part for message in messages for part in (_LENGTH.pack(len(message)), message))
    return _COUNT.pack(len(messages)) + b"".join(lengths_and_messages)


def decode_messages(payload: bytes) -> list[bytes]:
    """Raises MalformedPayload."""
    if len(payload) < _COUNT.size:
        raise MalformedPayload(f"{len(payload)} bytes are too few for a number of messages")
    (count,) = _COUNT.unpack_from(payload)
    if not 1 <= count <= MOST_MESSAGES:
        raise MalformedPayload(f"an entry has 1 to {MOST_MESSAGES} messages, not {count}")
    messages, at = [], _COUNT.size
    for _ in range(count):
        begin = at + _LENGTH.size
        if begin > len(payload):
            raise MalformedPayload("a message's length is missing")
        (length,) = _LENGTH.unpack_from(payload, at)
        at = begin + length
        if at > len(payload):
            raise MalformedPayload(f"a message of {length} bytes goes beyond its entry")
        messages.append(payload[begin:at])
    if at != len(payload):
        raise MalformedPayload(f"{len(payload) - at} bytes follow the last message")
    return messages
