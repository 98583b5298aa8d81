"""What clients ask nodes of CMQ, as commands of remoting; big-endian.

| request | header fields | body | answer |
|---|---|---|---|
| CREATE | queue | | |
| PRODUCE | queue | `count:1`, then `length:4 body` for each message | number of the first one |
| PULL | queue, most, waitMs | | `left:8`, then `number:8 length:4 body` for each message |
| ACK | queue | `number:8` for each message | whether this request acknowledged it, a byte for each message |
| ROUTE | queue | | group, and its leader if that is known |
| STATUS | | | JSON: of each group its number, term, role, leader, members and learners |
| ADD | group, node, address | | once the node votes |
| REMOVE | group, node | | once the others have let it go |
| TRANSFER | group, node | | once the node leads |

`left` is how many messages of the queue are not acknowledged, those with consumers among them. CREATE is answered alike
for a queue that is there. An answer that turns a client away for another leader has `leader` and `leaderAddress` in its
header, where these are known.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from system_under_test.remoting.command import RemotingCommand

MOST_MESSAGES: Final = 16
"""So many messages a request carries at most, or acknowledges."""
MAX_DIGITS: Final = 18
"""So many digits a number in a header field has at most."""
MAX_TEXT: Final = 255
"""So many characters a header field has at most."""
_LEFT = struct.Struct(">Q")
_MESSAGE = struct.Struct(">QI")
_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")


class Request(IntEnum):
    CREATE = 63001
    PRODUCE = 63002
    PULL = 63003
    ACK = 63004
    ROUTE = 63005
    STATUS = 63006
    ADD = 63007
    REMOVE = 63008
    TRANSFER = 63009


class Code(IntEnum):
    """What an answer says; nothing was changed unless it says otherwise."""

    SUCCESS = 0
    NOT_LEADER = 63101
    """Nothing was appended; the header may say who leads."""
    UNKNOWN_QUEUE = 63102
    TOO_LONG = 63103
    """A message is longer than the queue's files take."""
    MALFORMED = 63104
    DISK_FULL = 63105
    BUSY = 63106
    """Too many requests are under way."""
    TOO_MANY_QUEUES = 63107
    UNKNOWN_MESSAGE = 63108
    """A number that was never given to a message."""
    UNFIT_CHANGE = 63109
    """Members of a group cannot change so now."""
    NOT_TAKEN_OVER = 63110
    """The leadership stays where it is, unless the other one stands for election late."""
    OUTCOME_UNKNOWN = 63199
    """It was appended, and may be applied, or not: the leadership was lost, or there was no answer in time."""


class MalformedRequest(ValueError):
    """A request lacks a field, or has something else in its place."""


class MalformedAnswer(ValueError):
    """A body that no node answers."""


@dataclass(frozen=True, slots=True)
class Pulled:
    messages: tuple[tuple[int, bytes], ...]
    """(Number, body) of each."""
    left: int
    """How many messages of the queue were not acknowledged, these and those that consumers hold among them."""


def create(queue: str) -> RemotingCommand:
    return RemotingCommand.request(Request.CREATE, {"queue": queue})


def produce(queue: str, bodies: Sequence[bytes]) -> RemotingCommand:
    return RemotingCommand.request(Request.PRODUCE, {"queue": queue}, _encode_bodies(bodies))


def pull(queue: str, most: int, wait_ms: int) -> RemotingCommand:
    fields = {"queue": queue, "most": str(most), "waitMs": str(wait_ms)}
    return RemotingCommand.request(Request.PULL, fields)


def ack(queue: str, numbers: Sequence[int]) -> RemotingCommand:
    return RemotingCommand.request(Request.ACK, {"queue": queue}, b"".join(map(_NUMBER.pack, numbers)))


def route(queue: str) -> RemotingCommand:
    return RemotingCommand.request(Request.ROUTE, {"queue": queue})


def status() -> RemotingCommand:
    return RemotingCommand.request(Request.STATUS)


def add(group: int, node: str, address: str) -> RemotingCommand:
    return RemotingCommand.request(Request.ADD, {"group": str(group), "node": node, "address": address})


def remove(group: int, node: str) -> RemotingCommand:
    return RemotingCommand.request(Request.REMOVE, {"group": str(group), "node": node})


def transfer(group: int, node: str) -> RemotingCommand:
    return RemotingCommand.request(Request.TRANSFER, {"group": str(group), "node": node})


def text_field(command: RemotingCommand, name: str) -> str:
    """Raises MalformedRequest."""
    value = command.ext_fields.get(name)
    if not value or len(value) > MAX_TEXT:
        raise MalformedRequest(f"field {name!r}: expected 1 to {MAX_TEXT} characters, got {(value or '')[:40]!r}")
    return value


def number_field(command: RemotingCommand, name: str) -> int:
    """Raises MalformedRequest."""
    value = text_field(command, name)
    if not (value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS):
        raise MalformedRequest(f"field {name!r}: expected a whole number, got {value[:40]!r}")
    return int(value)


def _encode_bodies(bodies: Sequence[bytes]) -> bytes:
    if not 1 <= len(bodies) <= MOST_MESSAGES:
        raise ValueError(f"a request carries 1 to {MOST_MESSAGES} messages, got {len(bodies)}")
    return bytes([len(bodies)]) + b"".join(part for body in bodies for part in (_LENGTH.pack(len(body)), body))


def bodies_of(command: RemotingCommand) -> list[bytes]:
    """Of PRODUCE. Raises MalformedRequest."""
    body = command.body
    count = body[0] if body else 0
    if not 1 <= count <= MOST_MESSAGES:
        raise MalformedRequest(f"expected 1 to {MOST_MESSAGES} messages, got {count}")
    bodies, at = [], 1
    for _ in range(count):
        begin = at + _LENGTH.size
        if begin > len(body):
            raise MalformedRequest("a message's length is missing")
        at = begin + _LENGTH.unpack_from(body, at)[0]
        if at > len(body):
            raise MalformedRequest("a message goes beyond its request")
        bodies.append(body[begin:at])
    if at != len(body):
        raise MalformedRequest(f"{len(body) - at} bytes follow the last message")
    return bodies


def numbers_of(command: RemotingCommand) -> list[int]:
    """Of ACK. Raises MalformedRequest."""
    body = command.body
    if len(body) % _NUMBER.size or not 1 <= len(body) // _NUMBER.size <= MOST_MESSAGES:
        raise MalformedRequest(f"expected 1 to {MOST_MESSAGES} numbers of 8 bytes, got {len(body)} bytes")
    return [number for (number,) in _NUMBER.iter_unpack(body)]


def produced(first_number: int) -> bytes:
    return _NUMBER.pack(first_number)


def decode_produced(body: bytes) -> int:
    """Raises MalformedAnswer."""
    if len(body) != _NUMBER.size:
        raise MalformedAnswer(f"a number takes {_NUMBER.size} bytes, not {len(body)}")
    return int(_NUMBER.unpack(body)[0])


def encode_pulled(pulled: Pulled) -> bytes:
    messages = (part for number, body in pulled.messages for part in (_MESSAGE.pack(number, len(body)), body))
    return _LEFT.pack(pulled.left) + b"".join(messages)


def decode_pulled(body: bytes) -> Pulled:
    """Raises MalformedAnswer."""
    if len(body) < _LEFT.size:
        raise MalformedAnswer(f"{len(body)} bytes are too few for what a pull brings")
    messages, at = [], _LEFT.size
    while at < len(body):
        begin = at + _MESSAGE.size
        if begin > len(body):
            raise MalformedAnswer("a message's head is cut short")
        number, length = _MESSAGE.unpack_from(body, at)
        at = begin + length
        if at > len(body):
            raise MalformedAnswer("a message goes beyond its answer")
        messages.append((number, body[begin:at]))
    return Pulled(tuple(messages), _LEFT.unpack_from(body)[0])


def acknowledged(newly: Sequence[bool]) -> bytes:
    return bytes(newly)


def decode_acknowledged(body: bytes, count: int) -> tuple[bool, ...]:
    """Of a request about so many messages. Raises MalformedAnswer."""
    if len(body) != count or not set(body) <= {0, 1}:
        raise MalformedAnswer(f"expected a byte of 0 or 1 for each of {count} messages, got {len(body)} bytes")
    return tuple(map(bool, body))


def encode_status(groups: Sequence[Mapping[str, Any]]) -> bytes:
    return json.dumps(list(groups), separators=(",", ":")).encode()


def decode_status(body: bytes) -> list[dict[str, Any]]:
    """Raises MalformedAnswer."""
    try:
        groups = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"no status: {error}") from error
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise MalformedAnswer("no status: expected a list of groups")
    return groups
