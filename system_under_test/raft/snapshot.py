"""Snapshots: what a state machine became by all entries up to an index, in place of those entries.

A snapshot is a record, and files that the record names with their sizes and checksums. The same record lies on the
disk and travels, in chunks, to a follower whose next entries are gone. A chunk that is lost, late or repeated harms
nothing: a follower takes only the one that continues what it has, and a checksum over the whole decides whether it is
used.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from system_under_test.raft import membership as memberships
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import MalformedMessage, SnapshotChunk

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
    _, index, term, members_length, named_length, data_length = _HEAD.unpack_from(encoded)
    named_at = _HEAD.size + members_length
    data_at = named_at + named_length
    if data_at + data_length != len(encoded):
        raise MalformedMessage(f"a snapshot of {data_at + data_length} bytes in {len(encoded)}")
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


class Outgoing:
    """A snapshot on its way to one follower: one chunk at a time, sent again until the follower says what it has.

    It stays the same one until it has arrived, even if a newer one is taken: otherwise a leader that is busy enough
    would begin again and again.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.index = snapshot.index
        self.term = snapshot.term
        self._encoded = encode(snapshot)
        self._received = 0

    def chunk(self, limit: int) -> tuple[int, int, bytes]:
        """The size of the whole, where the next chunk begins, and the chunk."""
        return len(self._encoded), self._received, self._encoded[self._received : self._received + limit]

    def advance(self, received: int) -> bool:
        """Whether that says anything new. A follower that has nothing has begun anew; all else that is less than was
        heard before is late."""
        if received > self._received or (received == 0 and self._received):
            self._received = min(received, len(self._encoded))
            return True
        return False


class Incoming:
    """What a follower has of a snapshot that its leader sends."""

    def __init__(self) -> None:
        self._source = (0, 0)
        self._encoded = bytearray()

    def take(self, chunk: SnapshotChunk) -> Snapshot | None:
        """The snapshot, once all of it is there and whole."""
        if (chunk.term, chunk.index) != self._source:
            self._source = chunk.term, chunk.index
            self._encoded = bytearray()
        if chunk.offset == len(self._encoded):
            self._encoded += chunk.data
        if len(self._encoded) < chunk.size:
            return None
        encoded, self._encoded = bytes(self._encoded), bytearray()
        try:
            snapshot = decode(encoded)
        except MalformedMessage:
            return None
        return snapshot if snapshot.index == chunk.index else None

    @property
    def received(self) -> int:
        return len(self._encoded)
