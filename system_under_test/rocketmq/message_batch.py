"""The body of a batch, as producers send it: messages one behind the other, big-endian, each

`total size:4 | magic:4 | body CRC:4 | flag:4 | body length:4, body | properties length:2, properties`

of which magic and CRC mean nothing and are written as zeros. All have the topic, queue and other fields of the request.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.storage.message import decode_properties, encode_properties

MAX_MESSAGES: Final = 2**15 - 1
"""RocketMQ counts the messages of a batch in 16 bits."""
_START: Final = struct.Struct(">iiiii")
_PROPERTIES_LENGTH: Final = struct.Struct(">h")


class BatchedMessage(NamedTuple):
    """What a producer says of one message of a batch."""

    body: bytes
    properties: Mapping[str, str]
    flag: int = 0


def encode_batch(messages: Sequence[BatchedMessage]) -> bytes:
    pieces: list[bytes] = []
    for message in messages:
        properties = encode_properties(message.properties)
        size = _START.size + len(message.body) + _PROPERTIES_LENGTH.size + len(properties)
        pieces += (
            _START.pack(size, 0, 0, message.flag, len(message.body)),
            message.body,
            _PROPERTIES_LENGTH.pack(len(properties)),
            properties,
        )
    return b"".join(pieces)


def decode_batch(body: bytes) -> tuple[BatchedMessage, ...]:
    """At least one message. Raises RemotingError (MESSAGE_ILLEGAL)."""
    messages: list[BatchedMessage] = []
    position = 0
    try:
        while position < len(body):
            size, _, _, flag, body_length = _START.unpack_from(body, position)
            body_start = position + _START.size
            properties_at = body_start + body_length
            if body_length < 0 or len(messages) == MAX_MESSAGES:
                raise ValueError(f"a body of {body_length} bytes in message {len(messages)}, at most {MAX_MESSAGES}")
            (properties_length,) = _PROPERTIES_LENGTH.unpack_from(body, properties_at)
            properties_start = properties_at + _PROPERTIES_LENGTH.size
            end = properties_start + properties_length
            if properties_length < 0 or end != position + size or end > len(body):
                raise ValueError(f"the lengths of message {len(messages)} do not add up")
            properties = decode_properties(body[properties_start:end])
            messages.append(BatchedMessage(body[body_start:properties_at], properties, flag))
            position = end
    except (ValueError, struct.error) as error:
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"not a batch of messages: {error}") from error
    if not messages:
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, "a batch without messages")
    return tuple(messages)
