"""What clients ask a broker about a partition, as commands of remoting; big-endian.

| request | header fields | body | body of the answer |
|---|---|---|---|
| SEND | partition | messages, as an entry's payload | `offset:8` of the first one |
| READ | partition, offset | | `next offset:8`, then `offset:8 length:4 message` for each |
| SEAL | partition | | |

SEAL closes the ledger that takes entries, so that everybody may read all of it, and goes on in another one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from system_under_test.bookkeeper.partition.position import MOST_OFFSET
from system_under_test.bookkeeper.partition.reading import Found
from system_under_test.remoting.command import RemotingCommand

_OFFSET = struct.Struct(">q")
_MESSAGE = struct.Struct(">qI")
MAX_DIGITS: Final = 19
"""So many digits an offset in a header field has at most."""


class Request(IntEnum):
    SEND = 62001
    READ = 62002
    SEAL = 62003


class Code(IntEnum):
    """What an answer says; nothing was done unless it says otherwise."""

    SUCCESS = 0
    NOT_SERVING = 62101
    """Another broker owns the partition, or nobody has taken it over yet."""
    REFUSED = 62102
    """Too long, too many pending, or too few bookies."""
    MALFORMED = 62103
    FAILED = 62104
    """It may be in the log, or come there: the ledger was lost, or there was no answer in time."""


class MalformedRequest(ValueError):
    """A request lacks a field, or has something else in its place."""


class MalformedAnswer(ValueError):
    """A body that no broker answers."""


def send(partition: str, payload: bytes) -> RemotingCommand:
    return RemotingCommand.request(Request.SEND, {"partition": partition}, payload)


def read(partition: str, offset: int) -> RemotingCommand:
    return RemotingCommand.request(Request.READ, {"partition": partition, "offset": str(offset)})


def seal(partition: str) -> RemotingCommand:
    return RemotingCommand.request(Request.SEAL, {"partition": partition})


def partition_of(command: RemotingCommand) -> str:
    """Raises MalformedRequest."""
    name = command.ext_fields.get("partition")
    if not name:
        raise MalformedRequest("field 'partition' is missing")
    return name


def offset_of(command: RemotingCommand) -> int:
    """Raises MalformedRequest."""
    text = command.ext_fields.get("offset", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    if not is_number or int(text) > MOST_OFFSET:
        raise MalformedRequest(f"field 'offset': expected a whole number up to {MOST_OFFSET}, got {text[:40]!r}")
    return int(text)


def sent(offset: int) -> bytes:
    return _OFFSET.pack(offset)


def found(result: Found) -> bytes:
    return _OFFSET.pack(result.next_offset) + _joined(result.messages)


def _joined(messages: Sequence[tuple[int, bytes]]) -> bytes:
    return b"".join(part for offset, message in messages for part in (_MESSAGE.pack(offset, len(message)), message))


def decode_sent(body: bytes) -> int:
    """Raises MalformedAnswer."""
    if len(body) != _OFFSET.size:
        raise MalformedAnswer(f"an offset takes {_OFFSET.size} bytes, not {len(body)}")
    return int(_OFFSET.unpack(body)[0])


def decode_found(body: bytes) -> Found:
    """Raises MalformedAnswer."""
    if len(body) < _OFFSET.size:
        raise MalformedAnswer(f"{len(body)} bytes are too few for an offset")
    (next_offset,) = _OFFSET.unpack_from(body)
    messages, at = [], _OFFSET.size
    while at < len(body):
        begin = at + _MESSAGE.size
        offset, length = _MESSAGE.unpack_from(body, at) if begin <= len(body) else (0, len(body))
        at = begin + length
        if at > len(body):
            raise MalformedAnswer("a message goes beyond its answer")
        messages.append((offset, body[begin:at]))
    return Found(tuple(messages), next_offset)
