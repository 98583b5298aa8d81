"""What Raft nodes say to each other, what they keep, and how both look as bytes.

A frame is `length:4 | group:4 | kind:1 | term:8 | sender | fields`, big-endian; the length does not count itself.
Strings are `length:2 | UTF-8`. Nothing here decides anything.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from system_under_test.raft import membership as memberships

MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_SNAPSHOT_BYTES = 1 << 50
"""The most of a snapshot's record and files together."""
MAX_RECORD_BYTES = 1024 * 1024 * 1024
"""The most of a snapshot's record, which is held in memory."""
MAX_TERM = 2**63 - 1
"""A node that hears of a term may have to begin the one after it, and to keep that in eight bytes."""


class MalformedMessage(Exception):
    """Bytes that are no Raft message; the connection they came on is of no use any more."""


class Kind(IntEnum):
    """What an entry is for."""

    COMMAND = 0
    """The state machine; without data nobody: the no-op with which a leader begins its term."""
    MEMBERSHIP = 1
    """Raft itself: who its members are, from this entry on."""


@dataclass(frozen=True, slots=True)
class Entry:
    index: int
    """Counted from 1, dense."""
    term: int
    data: bytes
    kind: Kind = Kind.COMMAND


@dataclass(frozen=True, slots=True)
class HardState:
    """What a node must never forget: the highest term it has seen, and whom it voted for in it."""

    term: int = 0
    vote: str | None = None


@dataclass(frozen=True, slots=True)
class PreVoteRequest:
    sender: str
    recipient: str
    term: int
    """The term the sender would begin; it has not begun it."""
    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class PreVoteReply:
    sender: str
    recipient: str
    term: int
    """The term asked about if it is granted, otherwise the voter's own."""
    granted: bool


@dataclass(frozen=True, slots=True)
class VoteRequest:
    sender: str
    recipient: str
    term: int
    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class SuccessorVoteRequest(VoteRequest):
    """Of one whom the leader has asked to stand: also for those who hear that leader."""


@dataclass(frozen=True, slots=True)
class VoteReply:
    sender: str
    recipient: str
    term: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Append:
    """Entries from the leader, or none: then a heartbeat that checks the log at `previous_index` all the same."""

    sender: str
    recipient: str
    term: int
    round: int
    """Number of the leader's call for confirmation; answers repeat it."""
    previous_index: int
    previous_term: int
    commit: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class AppendAccepted:
    sender: str
    recipient: str
    term: int
    round: int
    match: int
    """The sender's log equals the leader's up to here, durably."""


@dataclass(frozen=True, slots=True)
class AppendRefused:
    sender: str
    recipient: str
    term: int
    round: int
    previous_index: int
    """The one that did not fit."""
    hint_index: int
    """The last entry of the sender that might fit, and its term."""
    hint_term: int


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A part of the leader's snapshot, for a follower whose next entries the leader has no more. Once all is there it
    is answered with AppendAccepted."""

    sender: str
    recipient: str
    term: int
    round: int
    index: int
    """The index of the last entry that the snapshot stands for."""
    size: int
    """The size of the whole snapshot: the record, and behind it the files that the record names."""
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ChunkTaken:
    sender: str
    recipient: str
    term: int
    round: int
    index: int
    received: int
    """So many bytes of it the sender has, from the first on, none of them durably."""


@dataclass(frozen=True, slots=True)
class TimeoutNow:
    """From a leader that wants the recipient to lead: stand for election at once, without asking for pre-votes."""

    sender: str
    recipient: str
    term: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first frame of a connection: who speaks on it, and where that node is reached, as the one that listens may
    not have heard yet that it is a member."""

    node: str
    address: str


Message = (
    PreVoteRequest
    | PreVoteReply
    | VoteRequest
    | VoteReply
    | Append
    | AppendAccepted
    | AppendRefused
    | SnapshotChunk
    | ChunkTaken
    | TimeoutNow
)

_GREETING = b"stormproof-raft"
_HEAD = struct.Struct(">IIBQH")
_TWO = struct.Struct(">QQ")
_THREE = struct.Struct(">QQQ")
_FOUR = struct.Struct(">QQQQ")
_APPEND = struct.Struct(">QQQQI")
_CHUNK = struct.Struct(">QQQQI")
_ENTRY = struct.Struct(">QIB")
_KIND: dict[type, int] = {
    PreVoteRequest: 1,
    PreVoteReply: 2,
    VoteRequest: 3,
    VoteReply: 4,
    Append: 5,
    AppendAccepted: 6,
    AppendRefused: 7,
    SnapshotChunk: 8,
    ChunkTaken: 9,
    TimeoutNow: 10,
    SuccessorVoteRequest: 11,
}


def encode(group: int, message: Message) -> bytes:
    """The whole frame. The recipient is not in it: it is the node that reads the frame."""
    if isinstance(message, Append):
        parts = [
            _APPEND.pack(
                message.round, message.previous_index, message.previous_term, message.commit, len(message.entries)
            )
        ]
        for entry in message.entries:
            parts.append(_ENTRY.pack(entry.term, len(entry.data), entry.kind))
            parts.append(entry.data)
        fields = b"".join(parts)
    elif isinstance(message, AppendAccepted):
        fields = _TWO.pack(message.round, message.match)
    elif isinstance(message, AppendRefused):
        fields = _FOUR.pack(message.round, message.previous_index, message.hint_index, message.hint_term)
    elif isinstance(message, SnapshotChunk):
        fields = (
            _CHUNK.pack(message.round, message.index, message.size, message.offset, len(message.data)) + message.data
        )
    elif isinstance(message, ChunkTaken):
        fields = _THREE.pack(message.round, message.index, message.received)
    elif isinstance(message, PreVoteRequest | VoteRequest):
        fields = _TWO.pack(message.last_index, message.last_term)
    elif isinstance(message, TimeoutNow):
        fields = b""
    else:
        fields = b"\x01" if message.granted else b"\x00"
    sender = message.sender.encode()
    length = _HEAD.size - 4 + len(sender) + len(fields)
    return _HEAD.pack(length, group, _KIND[type(message)], message.term, len(sender)) + sender + fields


def encode_greeting(greeting: Greeting) -> bytes:
    node, address = greeting.node.encode(), greeting.address.encode()
    body = _GREETING + len(node).to_bytes(2, "big") + node + address
    return len(body).to_bytes(4, "big") + body


def decode_greeting(frame: bytes) -> Greeting:
    """From a frame without its length word. Raises MalformedMessage."""
    at = len(_GREETING) + 2
    end = at + int.from_bytes(frame[at - 2 : at], "big")
    try:
        node, address = frame[at:end].decode(), frame[end:].decode()
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a greeting of {len(frame)} bytes: {error}") from error
    host, _, port = address.rpartition(":")
    if not frame.startswith(_GREETING) or not node or not host or not (port.isascii() and port.isdigit()):
        raise MalformedMessage("a connection that does not begin with a greeting")
    return Greeting(node, address)


def frame_length(word: bytes) -> int:
    length = int.from_bytes(word, "big")
    if not _HEAD.size - 4 <= length <= MAX_FRAME_BYTES:
        raise MalformedMessage(f"a frame of {length} bytes is out of bounds")
    return length


def decode(frame: bytes, recipient: str) -> tuple[int, Message]:
    """The group and the message, from a frame without its length word. Raises MalformedMessage."""
    try:
        return int.from_bytes(frame[:4], "big"), _decode(frame[4:], recipient)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise MalformedMessage(f"a frame of {len(frame)} bytes: {error}") from error


def _decode(frame: bytes, recipient: str) -> Message:
    kind = frame[0]
    term = int.from_bytes(frame[1:9], "big")
    if term > MAX_TERM:
        raise MalformedMessage(f"no term can follow {term}")
    at = 11 + int.from_bytes(frame[9:11], "big")
    if at > len(frame):
        raise MalformedMessage("the sender's name is cut short")
    sender = frame[11:at].decode()
    if kind == 5:
        round_, previous_index, previous_term, commit, count = _APPEND.unpack_from(frame, at)
        at += _APPEND.size
        entries = []
        for index in range(previous_index + 1, previous_index + 1 + count):
            entry_term, size, kind_of_entry = _ENTRY.unpack_from(frame, at)
            at += _ENTRY.size
            data = frame[at : at + size]
            if len(data) != size:
                raise MalformedMessage("an entry is cut short")
            at += size
            entries.append(_entry(index, entry_term, data, kind_of_entry))
        return Append(sender, recipient, term, round_, previous_index, previous_term, commit, tuple(entries))
    if kind == 6:
        round_, match = _TWO.unpack_from(frame, at)
        return AppendAccepted(sender, recipient, term, round_, match)
    if kind == 7:
        round_, previous_index, hint_index, hint_term = _FOUR.unpack_from(frame, at)
        return AppendRefused(sender, recipient, term, round_, previous_index, hint_index, hint_term)
    if kind == 8:
        round_, index, size, offset, length = _CHUNK.unpack_from(frame, at)
        at += _CHUNK.size
        data = frame[at : at + length]
        if len(data) != length:
            raise MalformedMessage("a chunk is cut short")
        if not offset + length <= size <= MAX_SNAPSHOT_BYTES:
            raise MalformedMessage(f"a chunk of {length} bytes at {offset} of a snapshot of {size}")
        return SnapshotChunk(sender, recipient, term, round_, index, size, offset, data)
    if kind == 9:
        return ChunkTaken(sender, recipient, term, *_THREE.unpack_from(frame, at))
    if kind == 10:
        return TimeoutNow(sender, recipient, term)
    if kind == 1:
        return PreVoteRequest(sender, recipient, term, *_TWO.unpack_from(frame, at))
    if kind == 3:
        return VoteRequest(sender, recipient, term, *_TWO.unpack_from(frame, at))
    if kind == 11:
        return SuccessorVoteRequest(sender, recipient, term, *_TWO.unpack_from(frame, at))
    if kind == 2:
        return PreVoteReply(sender, recipient, term, frame[at] == 1)
    if kind == 4:
        return VoteReply(sender, recipient, term, frame[at] == 1)
    raise MalformedMessage(f"kind {kind} is unknown")


def _entry(index: int, term: int, data: bytes, kind: int) -> Entry:
    try:
        entry = Entry(index, term, data, Kind(kind))
        if entry.kind is Kind.MEMBERSHIP:
            memberships.decode(data)
    except ValueError as error:
        raise MalformedMessage(str(error)) from error
    return entry
