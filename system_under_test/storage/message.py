"""Messages as RocketMQ lays them out in its commit log, byte for byte.

Claims: `decode_message` returns a message only if every byte of it is as it was encoded. The layout's own
CRC covers the body alone, so a torn header could pass; therefore every message ends with the property
`__CRC32#` (RocketMQ's enabledAppendPropCRC), whose ten digits are the CRC of all bytes before that property.
With the magic, the physical offset and the lengths that have to add up, neither a torn nor a zero-filled nor
a misplaced message is accepted. RocketMQ's readers understand such messages as they are.

A message of RocketMQ's own brokers has that property only where they are set so. One without it is read, stored and
recovered as well, with less certainty: its body's CRC, its lengths and its properties have to make sense, and its end
must not resemble the property, so that harm to one of our messages does not pass for one of theirs.

A batch is messages one behind the other, of which all but the last have CONTINUES in their sysFlag: a log ends with
whole batches only, and readers are shown all of a batch or nothing. (RocketMQ's batches can be torn; its readers pass
over a bit that they do not know.)

`decode_header` is the fast path for dispatch: it trusts the bytes (they were checked when they were written or
recovered) and reads only what a consume queue needs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

from system_under_test.storage.errors import MessageTooLarge, RecordInvalid
from system_under_test.storage.record_format import BLANK_BYTES, RecordFormat
from system_under_test.storage.tags_code import tags_code

MESSAGE_MAGIC = 0xDAA320A7
_BLANK = struct.Struct(">iI")
_BLANK_MAGIC = 0xCBD43194

# totalSize magic bodyCrc queueId flag queueOffset physicalOffset sysFlag bornTimestamp bornHost
# storeTimestamp storeHost reconsumeTimes preparedTransactionOffset bodyLength
_HEADER = struct.Struct(">iIiiiqqiq8sq8siqi")
_START = struct.Struct(">iI")
_DISPATCH = struct.Struct(">i8xi4xqqi16xq20xi")
_TIMESTAMP = struct.Struct(">q")
_TIMESTAMP_AT = 56
_HEAD = struct.Struct(">4xI28xi")
_BODY_LENGTH = struct.Struct(">i")
_PROPERTIES_LENGTH = struct.Struct(">H")
_LEAST = _HEADER.size + 1 + 2

CONTINUES = 1 << 30
"""A bit of sysFlag that says that the next message belongs to the same batch."""

_CRC_NAME = b"__CRC32#\x01"
_CRC_BYTES = len(_CRC_NAME) + 10 + 1
_RESEMBLING = 5
"""Bytes in their places: so many of its name's ten are no accident."""
_CRC_MASK = 0x7FFFFFFF
MAX_PROPERTIES_BYTES = 32767 - _CRC_BYTES
"""So long may the properties of one message be without its CRC: RocketMQ reads their length as a signed number."""
MAX_TIMES = (1 << 31) - 1
"""The greatest count of times that a message has room for."""
HEADER_BYTES = _HEADER.size
_TAGS = b"TAGS\x01"
_KEY = b"KEY"


class MessageHeader(NamedTuple):
    """What dispatch needs of a message. `keys` are the producer's unique one and those of the application."""

    physical_offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    tags_code: int
    sys_flag: int
    store_timestamp_ms: int
    keys: tuple[str, ...]


class Message(NamedTuple):
    """One decoded message; hosts are 4 bytes of IPv4 address and 4 of port."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    body: bytes
    properties: Mapping[str, str]
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    store_timestamp_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int


class MessageInvalid(RecordInvalid):
    """The bytes at this position are no whole, unharmed message."""


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """`name\\x01value\\x02` for each property, in the mapping's order."""
    return "".join([f"{name}\x01{value}\x02" for name, value in properties.items()]).encode()


def decode_properties(data: bytes) -> dict[str, str]:
    """The inverse of `encode_properties`; pieces without a separator are passed over."""
    if not data:
        return {}
    pieces = [piece.partition("\x01") for piece in data.decode().split("\x02")]
    return {name: value for name, separator, value in pieces if separator}


def message_bytes(topic: bytes, body: bytes, properties: bytes) -> int:
    """The size of the encoded message, its CRC property included.

    Raises MessageTooLarge where a length field of the layout would overflow.
    """
    if len(topic) > 127 or len(properties) > MAX_PROPERTIES_BYTES:
        raise MessageTooLarge(f"topic of {len(topic)} bytes (at most 127), properties of {len(properties)} bytes")
    return _LEAST + len(body) + len(topic) + len(properties) + _CRC_BYTES


def encode_message(
    *,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    body: bytes,
    properties: bytes,
    born_timestamp_ms: int,
    store_timestamp_ms: int,
    born_host: bytes,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """The message's bytes, `message_bytes` of them. `properties` is empty or ends with its separator."""
    properties_length = len(properties) + _CRC_BYTES
    start = b"".join(
        (
            _HEADER.pack(
                _LEAST + len(body) + len(topic) + properties_length,
                MESSAGE_MAGIC,
                crc32(body) & _CRC_MASK,
                queue_id,
                flag,
                queue_offset,
                physical_offset,
                sys_flag,
                born_timestamp_ms,
                born_host,
                store_timestamp_ms,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                len(body),
            ),
            body,
            bytes((len(topic),)),
            topic,
            _PROPERTIES_LENGTH.pack(properties_length),
            properties,
        )
    )
    return b"%b%b%b\x02" % (start, _CRC_NAME, _crc_digits(crc32(start) & _CRC_MASK))


def peek_size(buffer: bytes, position: int) -> int:
    """The size a message's header at `position` claims, 0 if no message starts there, -1 if there are too few bytes."""
    if len(buffer) - position < _START.size:
        return -1
    size, magic = _START.unpack_from(buffer, position)
    return size if magic == MESSAGE_MAGIC and size >= _LEAST else 0


def goes_on(buffer: bytes, position: int) -> bool:
    """Whether the message at `position` is not the last of its batch; no if too little of it is there."""
    if len(buffer) - position < _HEAD.size:
        return False
    magic, sys_flag = _HEAD.unpack_from(buffer, position)
    return bool(magic == MESSAGE_MAGIC and sys_flag & CONTINUES)


def decode_header(buffer: bytes, position: int) -> MessageHeader:
    """The dispatch fields of the whole message at `position`, unchecked."""
    size, queue_id, queue_offset, physical_offset, sys_flag, stored_ms, body_length = _DISPATCH.unpack_from(
        buffer, position
    )
    at = position + _HEADER.size + body_length
    topic_end = at + 1 + buffer[at]
    topic = buffer[at + 1 : topic_end].decode()
    start, end = topic_end + 2, position + size
    return MessageHeader(
        physical_offset,
        size,
        topic,
        queue_id,
        queue_offset,
        _tags_code(buffer, start, end),
        sys_flag,
        stored_ms,
        keys_of(decode_properties(buffer[start : _crc_at(buffer, start, end)]))
        if buffer.find(_KEY, start, end) >= 0
        else (),
    )


def keys_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """What a message is found by: its UNIQ_KEY, and its KEYS, which have spaces between."""
    unique, keys = properties.get("UNIQ_KEY"), properties.get("KEYS")
    return (*((unique,) if unique else ()), *(key for key in (keys or "").split(" ") if key))


def properties_of(message: bytes) -> dict[str, str]:
    """All properties, but for the CRC, of the whole message that these bytes are, unchecked.

    Raises MessageInvalid where what they say makes no sense.
    """
    try:
        (body_length,) = _BODY_LENGTH.unpack_from(message, 84)
        topic_at = 88 + body_length
        start = topic_at + 1 + message[topic_at] + 2
        return decode_properties(message[start : _crc_at(message, start, len(message))])
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise MessageInvalid("its lengths or its properties make no sense") from error


def check_message(buffer: bytes, position: int, physical_offset: int) -> int:
    """The size of the message at `position`. Raises MessageInvalid unless it is whole, unharmed and in its place."""
    fields, _ = _checked(buffer, position)
    if fields[6] != physical_offset:
        raise MessageInvalid(f"the message belongs at {fields[6]}")
    return int(fields[0])


def encode_blank(size: int) -> bytes:
    """What fills the last `size` bytes of a segment when the next message does not fit: header, then zeros."""
    return _BLANK.pack(size, _BLANK_MAGIC) + bytes(size - BLANK_BYTES)


def blank_size(buffer: bytes, position: int) -> int:
    """The size a blank's header at `position` claims, or 0 if no blank starts there."""
    if len(buffer) - position < BLANK_BYTES:
        return 0
    size, magic = _BLANK.unpack_from(buffer, position)
    return size if magic == _BLANK_MAGIC and size >= BLANK_BYTES else 0


MESSAGES = RecordFormat(
    head_bytes=_HEAD.size,
    size=peek_size,
    goes_on=goes_on,
    check=check_message,
    encode_blank=encode_blank,
    blank_size=blank_size,
)
"""A log of such messages."""


def decode_message(buffer: bytes, position: int) -> Message:
    """The checked message at `position`. Raises MessageInvalid.

    It may stand anywhere: the physical offset it was written for is taken from the message.
    """
    fields, body_end = _checked(buffer, position)
    topic_end = body_end + 1 + buffer[body_end]
    try:
        topic = buffer[body_end + 1 : topic_end].decode()
        end = position + fields[0]
        properties = decode_properties(buffer[topic_end + 2 : _crc_at(buffer, topic_end + 2, end)])
    except UnicodeDecodeError as error:
        raise MessageInvalid("the topic or a property is no text") from error
    return Message(
        topic=topic,
        queue_id=fields[3],
        queue_offset=fields[5],
        physical_offset=fields[6],
        size=fields[0],
        body=buffer[position + _HEADER.size : body_end],
        properties=properties,
        flag=fields[4],
        sys_flag=fields[7],
        born_timestamp_ms=fields[8],
        born_host=fields[9],
        store_timestamp_ms=fields[10],
        store_host=fields[11],
        reconsume_times=fields[12],
        prepared_transaction_offset=fields[13],
    )


def queue_entry(buffer: bytes, position: int) -> tuple[int, bytes, int, int]:
    """Queue offset, body, sysFlag and size of the checked message at `position`: all that a reader of a queue needs.

    Raises MessageInvalid.
    """
    fields, body_end = _checked(buffer, position)
    return fields[5], buffer[position + _HEADER.size : body_end], fields[7], fields[0]


def _checked(buffer: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    """The header's fields and where the body ends. Raises MessageInvalid unless the message is whole and unharmed."""
    size = peek_size(buffer, position)
    if size <= 0:
        raise MessageInvalid("no message starts here")
    end = position + size
    if end > len(buffer):
        raise MessageInvalid("the message is cut")
    fields = _HEADER.unpack_from(buffer, position)
    body_start = position + _HEADER.size
    body_end = body_start + fields[14]
    if body_end < body_start or body_end + 3 > end:
        raise MessageInvalid("the body is longer than the message")
    at = body_end + 1 + buffer[body_end]
    if at + 2 > end or at + 2 + _PROPERTIES_LENGTH.unpack_from(buffer, at)[0] != end:
        raise MessageInvalid("the lengths do not add up")
    covered = _crc_at(buffer, at + 2, end)
    view = memoryview(buffer)
    if covered == end:
        _require_plain_properties(buffer, at + 2, end)
    elif buffer[covered + len(_CRC_NAME) : end] != _crc_digits(crc32(view[position:covered]) & _CRC_MASK) + b"\x02":
        raise MessageInvalid("the message's CRC differs")
    if crc32(view[body_start:body_end]) & _CRC_MASK != fields[2]:
        raise MessageInvalid("the body's CRC differs")
    return fields, body_end


def _crc_at(buffer: bytes, start: int, end: int) -> int:
    """Where in a message's properties its CRC begins, or their end where it has none."""
    at = end - _CRC_BYTES
    return at if at >= start and buffer.startswith(_CRC_NAME, at) else end


def _require_plain_properties(buffer: bytes, start: int, end: int) -> None:
    """Raises MessageInvalid for properties that no broker writes without a CRC behind them."""
    properties = buffer[start:end]
    name = properties[-_CRC_BYTES:][: len(_CRC_NAME)]
    resembling = sum(one == other for one, other in zip(name, _CRC_NAME, strict=False))
    if 0 in properties or resembling >= _RESEMBLING:
        raise MessageInvalid("the message's CRC is missing")
    try:
        properties.decode()
    except UnicodeDecodeError as error:
        raise MessageInvalid("a property is no text") from error


def store_timestamp_ms(buffer: bytes, position: int) -> int:
    """The store timestamp of the message at `position`, unchecked."""
    return int(_TIMESTAMP.unpack_from(buffer, position + _TIMESTAMP_AT)[0])


def encode_host(address: str, port: int) -> bytes:
    """IPv4 address and port in the layout's 8 bytes."""
    return bytes(int(part) for part in address.split(".")) + port.to_bytes(4, "big")


def _crc_digits(value: int) -> bytes:
    # RocketMQ writes the decimal digits from the lowest to the highest.
    return (b"%010d" % value)[::-1]


def _tags_code(buffer: bytes, start: int, end: int) -> int:
    at = buffer.find(_TAGS, start, end)
    if at < 0 or (at > start and buffer[at - 1] != 2):
        return 0
    at += len(_TAGS)
    return tags_code(buffer[at : buffer.index(b"\x02", at, end)].decode())


def offset_in_header(data: bytes, position: int) -> int | None:
    """The offset that the message which begins here bears; None where its header does not end within `data`."""
    if position + _HEADER.size > len(data):
        return None
    offset: int = _HEADER.unpack_from(data, position)[6]
    return offset
