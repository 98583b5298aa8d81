"""The record of a group's state in a snapshot, beside the queues' files; big-endian.

    count of queues:4, then of each, in the order of their creation:
    length of its name:1 | name | next number:8 | checksum:4 | count of files:4 | files | bits

A file is `first number:8 | size:8 | CRC:4`. The bits are those of its messages, from the first file's first number to
before the next number, the lowest one first.

Raft's snapshot has a checksum, so there is none here. The bits are taken over as they are, so encoding a million
messages takes less time than the flow of entries notices.
"""

from __future__ import annotations

import struct
from itertools import pairwise

from system_under_test.cmq.entry import checked_queue
from system_under_test.cmq.record import HEAD_BYTES
from system_under_test.cmq.state_machine import CopiedQueue, CopiedState, FileState, file_name
from system_under_test.raft.snapshot import SnapshotFile

_COUNT = struct.Struct(">I")
_QUEUE = struct.Struct(">QII")
_FILE = struct.Struct(">QQI")


def encode(copied: CopiedState) -> bytes:
    parts = [_COUNT.pack(len(copied.queues))]
    for queue in copied.queues:
        name = queue.name.encode()
        parts += (bytes((len(name),)), name, _QUEUE.pack(queue.next_number, queue.checksum, len(queue.files)))
        parts += (_FILE.pack(file.first, file.size, file.crc) for file in queue.files)
        parts.append(queue.acknowledged)
    return b"".join(parts)


def decode(data: bytes) -> CopiedState:
    """Raises ValueError for bytes that are not one whole record of a state that a group can have."""
    record = _Record(data)
    (count,) = _COUNT.unpack(record.take(_COUNT.size))
    queues: dict[str, CopiedQueue] = {}
    for _ in range(count):
        queue = _queue(record)
        if queue.name in queues:
            raise ValueError(f"queue {queue.name} comes twice")
        queues[queue.name] = queue
    if record.left:
        raise ValueError(f"{record.left} bytes stand behind the last queue")
    return CopiedState(tuple(queues.values()))


def files(copied: CopiedState) -> tuple[SnapshotFile, ...]:
    """What of the queues' files belongs to this state."""
    return tuple(
        SnapshotFile(file_name(queue.name, file.first), file.size, file.crc)
        for queue in copied.queues
        for file in queue.files
    )


class _Record:
    """Bytes that are taken one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError(f"the record ends {count - self.left} bytes too early")
        self._at += count
        return self._data[self._at - count : self._at]


def _queue(record: _Record) -> CopiedQueue:
    (length,) = record.take(1)
    name = checked_queue(record.take(length).decode("latin-1"))
    next_number, checksum, count = _QUEUE.unpack(record.take(_QUEUE.size))
    states = tuple(FileState(*each) for each in _FILE.iter_unpack(record.take(count * _FILE.size)))
    _check_files(name, states, next_number)
    messages = next_number - states[0].first if states else 0
    bits = record.take((messages + 7) >> 3)
    if messages & 7 and bits[-1] >> (messages & 7):
        raise ValueError(f"queue {name}: messages are acknowledged that it does not have")
    return CopiedQueue(name, next_number, checksum, states, bits)


def _check_files(name: str, states: tuple[FileState, ...], next_number: int) -> None:
    if bool(states) != bool(next_number):
        raise ValueError(f"queue {name} has {len(states)} files and {next_number} messages")
    firsts = [file.first for file in states] + [next_number] * bool(states)
    for file, (first, following) in zip(states, pairwise(firsts), strict=True):
        if file.size < (following - first) * HEAD_BYTES or following <= first:
            raise ValueError(f"queue {name}: messages {first} to {following - 1} are not {file.size} bytes")
