"""The commands of a group, as entries of its log bear them; big-endian.

    create    kind 0:1 | queue
    produce   kind 1:1 | queue | count:1 | (size:4 | body) of each message
    ack       kind 2:1 | queue | count:1 | number:8 of each message

A queue's name is its length, one byte, and its characters. Bytes that are a command are the only ones that are it.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

MAX_MESSAGES = 16
"""So many messages a command has at most."""
QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

_CREATE, _PRODUCE, _ACK = range(3)
_SIZE = struct.Struct(">I")
_MAX_NUMBER = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Create:
    queue: str


@dataclass(frozen=True, slots=True)
class Produce:
    queue: str
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Ack:
    queue: str
    numbers: tuple[int, ...]
    """Those of messages that were delivered."""


Command = Create | Produce | Ack


def encode(command: Command) -> bytes:
    """Raises ValueError for a name, a count or a number that no command can have."""
    name = checked_queue(command.queue).encode()
    head = bytes((len(name),)) + name
    match command:
        case Create():
            return bytes((_CREATE,)) + head
        case Produce(bodies=bodies):
            parts = [bytes((_PRODUCE,)), head, bytes((_checked_count(len(bodies)),))]
            for body in bodies:
                parts += (_SIZE.pack(len(body)), body)
            return b"".join(parts)
        case Ack(numbers=numbers):
            count = _checked_count(len(numbers))
            if not all(0 <= number <= _MAX_NUMBER for number in numbers):
                raise ValueError(f"expected numbers of messages from 0 to {_MAX_NUMBER}, got {numbers}")
            return struct.pack(f">B{len(head)}sB{count}Q", _ACK, head, count, *numbers)


def decode(data: bytes) -> Command:
    """Raises ValueError for bytes that are not one whole command."""
    kind = data[0] if data else -1
    if not _CREATE <= kind <= _ACK or len(data) < 2:
        raise ValueError(f"{len(data)} bytes are no command of a queue")
    at = 2 + data[1]
    name = checked_queue(data[2:at].decode("latin-1"))
    if len(name) != data[1]:
        raise ValueError("the command ends within the queue's name")
    if kind == _CREATE:
        if at != len(data):
            raise ValueError(f"{len(data) - at} bytes stand behind the command")
        return Create(name)
    count = _checked_count(data[at] if at < len(data) else 0)
    if kind == _PRODUCE:
        return Produce(name, _bodies(data, at + 1, count))
    if len(data) != at + 1 + 8 * count:
        raise ValueError(f"{count} numbers have {8 * count} bytes, these have {len(data) - at - 1}")
    return Ack(name, struct.unpack_from(f">{count}Q", data, at + 1))


def check(data: bytes) -> None:
    """Raises ValueError for bytes that are not one whole command."""
    decode(data)


def checked_queue(name: str) -> str:
    """The name. Raises ValueError for one that no queue can have."""
    if not QUEUE_NAME.fullmatch(name):
        raise ValueError(f"expected a queue's name of 1 to 64 letters, digits, - and _, got {name!r:.100}")
    return name


def _checked_count(count: int) -> int:
    if not 1 <= count <= MAX_MESSAGES:
        raise ValueError(f"expected 1 to {MAX_MESSAGES} messages, got {count}")
    return count


def _bodies(data: bytes, at: int, count: int) -> tuple[bytes, ...]:
    bodies = []
    for _ in range(count):
        if at + 4 > len(data):
            raise ValueError("the command ends before its last message")
        (size,) = _SIZE.unpack_from(data, at)
        at += 4 + size
        bodies.append(data[at - size : at])
    if at != len(data):
        raise ValueError(f"the messages have {at} bytes, the command has {len(data)}")
    return tuple(bodies)
