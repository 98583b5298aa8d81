"""What the queues of a group became by the entries of its log: which messages they have, in which files, which of them
are acknowledged.

It follows from the entries alone, so nodes that have applied the same entries have the same, files included: what an
entry writes to them is returned, for `message_files` to write. Nothing here does input or output.

A queue's messages are numbered from 0 and stand in files one behind the other. A new file begins where a record would
make one longer than `file_bytes`. The oldest file goes once all its messages are acknowledged, and their bits with it,
unless it is the only one.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from zlib import crc32

from system_under_test.cmq.bitmap import Bitmap, normal_bits
from system_under_test.cmq.entry import Ack, Command, Create, Produce, decode
from system_under_test.cmq.record import HEAD_BYTES, encode_record

_DIGESTED = struct.Struct(">QQI")


@dataclass(frozen=True, slots=True)
class Created:
    is_new: bool
    """False where there was such a queue already."""


@dataclass(frozen=True, slots=True)
class Produced:
    first: int
    """The number of the first message; those of the others follow."""
    count: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    newly: tuple[bool, ...]
    """Whether a number was not acknowledged before; one for each that was named."""


class Refusal(Enum):
    """Nothing was changed."""

    UNKNOWN_QUEUE = "there is no such queue"
    TOO_MANY_QUEUES = "the group has as many queues as it may have"
    NEVER_PRODUCED = "a number is acknowledged that no message has"


Result = Created | Produced | Acknowledged | Refusal


@dataclass(frozen=True, slots=True)
class Write:
    """Whole records, to be appended to one file."""

    queue: str
    file: int
    """The number of the file's first message."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Applied:
    result: Result
    writes: tuple[Write, ...] = ()
    """They are to be carried out in this order."""


@dataclass(frozen=True, slots=True)
class FileState:
    first: int
    """The number of its first message."""
    size: int
    crc: int
    """CRC-32 of all its bytes."""


def file_name(queue: str, first: int) -> str:
    """Of a queue's file by its first message's number; no other queue's file has it."""
    return f"{queue}.{first:020d}"


@dataclass(frozen=True, slots=True)
class CopiedQueue:
    """A queue as it was between two entries."""

    name: str
    next_number: int
    checksum: int
    files: tuple[FileState, ...]
    bits: bytes | bytearray
    """Those of a `Bitmap` whose base is the first file's first number."""

    @property
    def base(self) -> int:
        return self.files[0].first if self.files else 0

    @property
    def acknowledged(self) -> bytes:
        """The bits of the messages that it has, as many bytes as they take."""
        return normal_bits(self.bits, self.next_number - self.base)


@dataclass(frozen=True, slots=True)
class CopiedState:
    """A group's state as it was between two entries."""

    queues: tuple[CopiedQueue, ...] = ()
    """They come in the order of their creation."""


NO_QUEUES = CopiedState()


class Queue:
    """The messages of one queue; they are changed by entries alone."""

    __slots__ = ("bitmap", "checksum", "files", "next_number", "ordinal")

    def __init__(self, ordinal: int, files: Iterable[FileState] = (), next_number: int = 0, checksum: int = 0) -> None:
        self.ordinal = ordinal
        """Which one it is by the order of creation, the same on all nodes."""
        self.files = deque(files)
        """Without a gap, the newest last; none before the first message."""
        self.next_number = next_number
        """Of the next message that is produced."""
        self.checksum = checksum
        """CRC-32 over the heads of the records of all messages that it ever had; each has the CRC of its body."""
        self.bitmap = Bitmap(self.files[0].first if self.files else 0)

    @property
    def unacknowledged(self) -> int:
        """How many of its messages are not acknowledged."""
        return self.next_number - self.bitmap.base - self.bitmap.count

    def append(self, name: str, bodies: tuple[bytes, ...], file_bytes: int) -> list[Write]:
        writes = []
        records: list[bytes] = []
        size = self.files[-1].size if self.files else 0
        first = self.files[-1].first if self.files else 0
        for body in bodies:
            record = encode_record(self.next_number, body)
            if size and size + len(record) > file_bytes:
                if records:
                    writes.append(self._extend(name, first, records))
                    records = []
                first, size = self.next_number, 0
            records.append(record)
            size += len(record)
            self.checksum = crc32(record[:HEAD_BYTES], self.checksum)
            self.next_number += 1
        writes.append(self._extend(name, first, records))
        return writes

    def _extend(self, name: str, first: int, records: list[bytes]) -> Write:
        data = b"".join(records)
        last = self.files[-1] if self.files else None
        if last is not None and last.first == first:
            self.files[-1] = FileState(first, last.size + len(data), crc32(data, last.crc))
        else:
            self.files.append(FileState(first, len(data), crc32(data)))
            self._let_files_go()
        return Write(name, first, data)

    def acknowledge(self, numbers: tuple[int, ...]) -> tuple[bool, ...]:
        newly = tuple(map(self.bitmap.set, numbers))
        self._let_files_go()
        return newly

    def _let_files_go(self) -> None:
        files, first_unset = self.files, self.bitmap.first_unset
        while len(files) > 1 and files[1].first <= first_unset:
            files.popleft()
        self.bitmap.drop_before(files[0].first)


class QueueGroupState:
    """`file_bytes` and `max_queues` are the same on all nodes, or their states differ."""

    def __init__(self, file_bytes: int, max_queues: int, copied: CopiedState = NO_QUEUES) -> None:
        """As it was copied."""
        self._file_bytes = file_bytes
        self._max_queues = max_queues
        self.queues: dict[str, Queue] = {}
        """In the order of their creation."""
        for each in copied.queues:
            queue = self.queues[each.name] = Queue(len(self.queues), each.files, each.next_number, each.checksum)
            queue.bitmap = Bitmap(each.base, each.acknowledged)

    def apply(self, data: bytes) -> Applied:
        """Raises ValueError, with nothing changed, for bytes that are no command."""
        return self.carry_out(decode(data))

    def carry_out(self, command: Command) -> Applied:
        """The same, of a command that was decoded."""
        match command:
            case Create(name):
                return Applied(self._create(name))
            case Produce(name, bodies):
                queue = self.queues.get(name)
                if queue is None:
                    return Applied(Refusal.UNKNOWN_QUEUE)
                first = queue.next_number
                writes = queue.append(name, bodies, self._file_bytes)
                return Applied(Produced(first, len(bodies)), tuple(writes))
            case Ack(name, numbers):
                return Applied(self._acknowledge(name, numbers))

    def _create(self, name: str) -> Result:
        if name in self.queues:
            return Created(is_new=False)
        if len(self.queues) >= self._max_queues:
            return Refusal.TOO_MANY_QUEUES
        self.queues[name] = Queue(len(self.queues))
        return Created(is_new=True)

    def _acknowledge(self, name: str, numbers: tuple[int, ...]) -> Result:
        queue = self.queues.get(name)
        if queue is None:
            return Refusal.UNKNOWN_QUEUE
        if max(numbers) >= queue.next_number:
            return Refusal.NEVER_PRODUCED
        return Acknowledged(queue.acknowledge(numbers))

    def digest(self) -> int:
        """32 bits of all that it is: which messages there are, with their bodies, and which are acknowledged. Costs a
        pass over the bitmaps, and nothing for a message."""
        digest = 0
        for name, queue in self.queues.items():
            base = queue.bitmap.base
            digest = crc32(name.encode(), digest)
            digest = crc32(_DIGESTED.pack(base, queue.next_number, queue.checksum), digest)
            digest = crc32(queue.bitmap.to_bytes(queue.next_number), digest)
        return digest

    def copy(self) -> CopiedState:
        """What later entries do not change. Costs nothing for a message but its bit."""
        return CopiedState(
            tuple(
                CopiedQueue(name, queue.next_number, queue.checksum, tuple(queue.files), self.copy_bits(queue.bitmap))
                for name, queue in self.queues.items()
            )
        )

    def copy_bits(self, bitmap: Bitmap) -> bytes | bytearray:
        """Its bits, for a copy that later entries do not change."""
        return bytes(bitmap.bits)
