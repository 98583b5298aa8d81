"""Snapshots: what a state machine became by all entries up to an index, in place of those entries.

The same bytes lie on the disk and travel, in chunks, to a follower whose next entries are gone. A chunk that is
lost, late or repeated harms nothing: a follower takes only the one that continues what it has, and a checksum over
the whole decides whether it is used.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from system_under_test.raft import membership as memberships
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import MalformedMessage, SnapshotChunk

_HEAD = struct.Struct(">IQQI")


@dataclass(frozen=True, slots=True)
class Snapshot:
    index: int
    """The index of the last entry that it stands for; 0: of none."""
    term: int
    """The term of that entry."""
    data: bytes
    membership: Membership | None = None
    """The membership as of that entry; None where none has changed what is configured."""


NOTHING = Snapshot(0, 0, b"")


def encode(snapshot: Snapshot) -> bytes:
    members = b"" if snapshot.membership is None else memberships.encode(snapshot.membership)
    body = _HEAD.pack(0, snapshot.index, snapshot.term, len(members))[4:] + members + snapshot.data
    return zlib.crc32(body).to_bytes(4, "big") + body


def decode(encoded: bytes) -> Snapshot:
    """Raises MalformedMessage for bytes that are not one whole snapshot."""
    if len(encoded) < _HEAD.size or zlib.crc32(encoded[4:]) != int.from_bytes(encoded[:4], "big"):
        raise MalformedMessage(f"{len(encoded)} bytes are no snapshot: the checksum does not fit")
    _, index, term, length = _HEAD.unpack_from(encoded)
    at = _HEAD.size + length
    try:
        members = memberships.decode(encoded[_HEAD.size : at]) if length else None
    except ValueError as error:
        raise MalformedMessage(str(error)) from error
    return Snapshot(index, term, encoded[at:], members)


class Outgoing:
    """A snapshot on its way to one follower: one chunk at a time, sent again until the follower says what it has.

    It stays the same one until it has arrived, even if a newer one is taken: otherwise a leader that is busy enough
    would begin again and again.
    """

    def __init__(self, snapshot: Snapshot) -> None:
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
