"""Snapshots: what a state machine became by all entries up to an index, in place of those entries.

A snapshot is a record, and files that the record names with their sizes and checksums. The same record lies on the
disk and travels, in chunks, to a follower whose next entries are gone. It says how long it is and which files follow,
so that all come in one stream, the files onto the disk as they come. A chunk that is lost, late or repeated harms
nothing: a follower takes only the one that continues what it has, and checksums over the record and over each file
decide whether it is used.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from system_under_test.raft import membership as memberships
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import MAX_RECORD_BYTES, MalformedMessage, SnapshotChunk
from system_under_test.storage.errors import StorageCorrupt

_HEAD = struct.Struct(">IQQIII")
_FILE = struct.Struct(">QIB")
MAX_NAME_BYTES = 255
"""The longest name of a file."""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file that belongs to a snapshot, as it was then: it may have grown since."""

    name: str
    """Within the place where the snapshot's files lie; one part of a path."""
    size: int
    """So many bytes of it belong to the snapshot, from the first on."""
    crc: int
    """The CRC-32 of these bytes."""

    def __post_init__(self) -> None:
        if self.name in ("", ".", "..") or "/" in self.name or "\0" in self.name:
            raise ValueError(f"expected the name of a file without a directory, got {self.name!r}")
        if len(self.name.encode()) > MAX_NAME_BYTES:
            raise ValueError(f"expected a name of at most {MAX_NAME_BYTES} bytes, got {len(self.name.encode())}")
        if self.size < 0 or not 0 <= self.crc < 1 << 32:
            raise ValueError(f"expected a size and a CRC-32, got {self.size} and {self.crc}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    index: int
    """The index of the last entry that it stands for; 0: of none."""
    term: int
    """The term of that entry."""
    data: bytes
    membership: Membership | None = None
    """The membership as of that entry; None where none has changed what is configured."""
    files: tuple[SnapshotFile, ...] = ()
    """What belongs to it beside `data`; they travel in this order."""
    place: str = field(default="", compare=False)
    """The directory in which its files lie on this node; another node has them elsewhere."""


NOTHING = Snapshot(0, 0, b"")


def encode(snapshot: Snapshot) -> bytes:
    """The record: all but the place, and of files what is said of them."""
    members = b"" if snapshot.membership is None else memberships.encode(snapshot.membership)
    named = b"".join(_encode_file(file) for file in snapshot.files)
    lengths = len(members), len(named), len(snapshot.data)
    body = _HEAD.pack(0, snapshot.index, snapshot.term, *lengths)[4:] + members + named + snapshot.data
    return zlib.crc32(body).to_bytes(4, "big") + body


def decode(encoded: bytes) -> Snapshot:
    """Raises MalformedMessage for bytes that are not one whole record."""
    if len(encoded) < _HEAD.size or zlib.crc32(encoded[4:]) != int.from_bytes(encoded[:4], "big"):
        raise MalformedMessage(f"{len(encoded)} bytes are no snapshot: the checksum does not fit")
    if _record_length(encoded) != len(encoded):
        raise MalformedMessage(f"a snapshot of {_record_length(encoded)} bytes in {len(encoded)}")
    _, index, term, members_length, named_length, _ = _HEAD.unpack_from(encoded)
    named_at = _HEAD.size + members_length
    data_at = named_at + named_length
    try:
        members = memberships.decode(encoded[_HEAD.size : named_at]) if members_length else None
        files = tuple(_decode_files(encoded[named_at:data_at]))
    except (ValueError, struct.error) as error:
        raise MalformedMessage(str(error)) from error
    if len({file.name for file in files}) != len(files):
        raise MalformedMessage("a snapshot with two files of one name")
    return Snapshot(index, term, encoded[data_at:], members, files)


def _encode_file(file: SnapshotFile) -> bytes:
    name = file.name.encode()
    return _FILE.pack(file.size, file.crc, len(name)) + name


def _decode_files(encoded: bytes) -> Iterator[SnapshotFile]:
    """Raises ValueError, struct.error."""
    at = 0
    while at < len(encoded):
        size, crc, length = _FILE.unpack_from(encoded, at)
        at += _FILE.size
        name = encoded[at : at + length].decode()
        at += length
        if at > len(encoded):
            raise ValueError("the name of a file is cut short")
        yield SnapshotFile(name, size, crc)


class FileGone(StorageCorrupt):
    """A file of a snapshot has no longer what belongs to the snapshot."""


ReadFile = Callable[[str, int, int], bytes]
"""Reads of a file of this name, in this node's place, from an offset so many bytes. Raises FileGone, DiskError."""


def nothing_to_read(name: str, offset: int, length: int) -> bytes:
    raise FileGone(f"there is no file {name}")


class Outgoing:
    """A snapshot on its way to one follower: one chunk at a time, sent again until the follower says what it has.

    The chunks are parts of one stream, the record and then the files. It stays the same one until it has arrived, even
    if a newer one is taken: otherwise a leader that is busy enough would begin again and again.
    """

    def __init__(self, snapshot: Snapshot, read: ReadFile) -> None:
        self.snapshot = snapshot
        self.index = snapshot.index
        self.term = snapshot.term
        self._record = encode(snapshot)
        self._read = read
        self._ends = [*accumulate((file.size for file in snapshot.files), initial=len(self._record))]
        """Of the record and of each file, in the stream."""
        self._received = 0

    def chunk(self, limit: int) -> tuple[int, int, bytes]:
        """The size of the whole, where the next chunk begins, and the chunk. Raises FileGone, DiskError."""
        size, first = self._ends[-1], self._received
        parts, at, end = [], first, min(first + limit, size)
        while at < end:
            part = bisect_right(self._ends, at)
            until = min(end, self._ends[part])
            if part:
                file = self.snapshot.files[part - 1]
                parts.append(self._read(file.name, at - self._ends[part - 1], until - at))
            else:
                parts.append(self._record[at:until])
            at = until
        return size, first, b"".join(parts)

    def advance(self, received: int) -> bool:
        """Whether that says anything new. A follower that has nothing has begun anew; all else that is less than was
        heard before is late."""
        if received > self._received or (received == 0 and self._received):
            self._received = min(received, self._ends[-1])
            return True
        return False


@dataclass(frozen=True, slots=True)
class Piece:
    """What comes of a file of a snapshot."""

    name: str
    offset: int
    """So much of the file came before."""
    data: bytes


@dataclass(slots=True)
class Taken:
    """What a chunk brings."""

    begins: bool = False
    """The record is there: what came before of files, of other snapshots, is of no use."""
    pieces: list[Piece] = field(default_factory=list)
    snapshot: Snapshot | None = None
    """All of it is there now, and whole."""


class Incoming:
    """What a follower has of a snapshot that its leader sends: the record, and how far the files are, which go to the
    disk as they come."""

    def __init__(self) -> None:
        self._source = (0, 0, 0)
        self._begin()

    def _begin(self) -> None:
        self.received = 0
        """So many bytes of the stream."""
        self._record = bytearray()
        self._snapshot: Snapshot | None = None
        """What the record says, once it is there."""
        self._file = self._offset = self._crc = 0
        """The number of the file that comes, how much of it came, and the CRC-32 of that."""

    def take(self, chunk: SnapshotChunk) -> Taken:
        """Nothing of what does not continue what is there. A stream that turns out to be harmed begins anew."""
        source = chunk.term, chunk.index, chunk.size
        if source != self._source:
            self._source = source
            self._begin()
        taken = Taken()
        if chunk.offset != self.received:
            return taken
        self.received += len(chunk.data)
        try:
            data = chunk.data if self._snapshot else self._take_record(chunk, taken)
            if self._snapshot is not None:
                self._take_files(self._snapshot, data, taken)
        except MalformedMessage:
            self._begin()
            return Taken()
        if taken.snapshot is not None or self.received == chunk.size:
            self._begin()
        return taken

    def _take_record(self, chunk: SnapshotChunk, taken: Taken) -> bytes:
        """What is behind it. Raises MalformedMessage."""
        self._record += chunk.data
        if len(self._record) < _HEAD.size:
            return b""
        length = _record_length(self._record)
        if length > min(chunk.size, MAX_RECORD_BYTES):
            raise MalformedMessage(f"a record of {length} bytes in a snapshot of {chunk.size}")
        if len(self._record) < length:
            return b""
        snapshot, rest = decode(bytes(self._record[:length])), bytes(self._record[length:])
        if snapshot.index != chunk.index or length + sum(file.size for file in snapshot.files) != chunk.size:
            raise MalformedMessage(f"another snapshot than the one up to {chunk.index} of {chunk.size} bytes")
        self._snapshot, self._record = snapshot, bytearray()
        taken.begins = True
        return rest

    def _take_files(self, snapshot: Snapshot, data: bytes, taken: Taken) -> None:
        """Raises MalformedMessage."""
        while self._file < len(snapshot.files):
            file = snapshot.files[self._file]
            piece, data = data[: file.size - self._offset], data[file.size - self._offset :]
            if piece or not file.size:
                taken.pieces.append(Piece(file.name, self._offset, piece))
            self._offset += len(piece)
            self._crc = zlib.crc32(piece, self._crc)
            if self._offset < file.size:
                return
            if self._crc != file.crc:
                raise MalformedMessage(f"{file.name} came harmed: the checksum does not fit")
            self._file, self._offset, self._crc = self._file + 1, 0, 0
        taken.snapshot = snapshot


def _record_length(record: bytes | bytearray) -> int:
    """As its head says."""
    _, _, _, members_length, named_length, data_length = _HEAD.unpack_from(record)
    return _HEAD.size + int(members_length + named_length + data_length)
