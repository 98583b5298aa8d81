"""Snapshots as records and as streams of chunks: what is written is what is read, and nothing else is."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.raft.membership import Membership
from system_under_test.raft.message import MalformedMessage, SnapshotChunk
from system_under_test.raft.snapshot import FileGone, Incoming, Outgoing, Snapshot, SnapshotFile, decode, encode

number = st.integers(0, 2**63 - 1)
text = st.text(max_size=20)
names = st.text(min_size=1, max_size=20).filter(lambda name: name not in (".", "..") and not {"/", "\0"} & {*name})
files = st.lists(
    st.builds(SnapshotFile, names, number, st.integers(0, 2**32 - 1)), max_size=4, unique_by=lambda file: file.name
)
members = st.none() | st.dictionaries(text, text, min_size=1).map(lambda voters: Membership(voters=voters))
snapshots = st.builds(Snapshot, number, number, st.binary(max_size=50), members, files.map(tuple))


@given(snapshots)
def test_a_record_is_read_as_it_was_written_and_names_no_place(snapshot: Snapshot) -> None:
    read = decode(encode(snapshot))
    assert read == snapshot
    assert read.place == ""


@given(snapshots, st.data())
def test_a_record_that_is_cut_or_changed_is_refused(snapshot: Snapshot, data: st.DataObject) -> None:
    record = encode(snapshot)
    cut = data.draw(st.integers(0, len(record) - 1))
    flipped = data.draw(st.integers(0, len(record) - 1))
    for other in (record[:cut], record + b"x", record[:flipped] + bytes([record[flipped] ^ 1]) + record[flipped + 1 :]):
        with pytest.raises(MalformedMessage):
            decode(other)


@given(st.binary(max_size=80))
def test_other_bytes_are_refused_and_never_crash(garbage: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(garbage)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "../a", "a\0b", "n" * 256])
def test_a_file_outside_of_its_place_has_no_name_in_a_snapshot(name: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        SnapshotFile(name, 0, 0)
    length = len(name.encode())
    if length < 256:
        honest = encode(Snapshot(1, 1, b"", None, (SnapshotFile("n" * max(length, 1), 0, 0),)))
        forged = honest.replace(b"n" * max(length, 1), name.encode() or b".")
        with pytest.raises(MalformedMessage, match="expected the name"):
            decode(_signed(forged))


def test_no_two_files_have_one_name() -> None:
    honest = encode(Snapshot(1, 1, b"", None, (SnapshotFile("aaaa", 1, 2), SnapshotFile("bbbb", 3, 4))))
    with pytest.raises(MalformedMessage, match="two files of one name"):
        decode(_signed(honest.replace(b"bbbb", b"aaaa")))


def _signed(record: bytes) -> bytes:
    return zlib.crc32(record[4:]).to_bytes(4, "big") + record[4:]


contents = st.dictionaries(names, st.binary(max_size=30), max_size=4)


def with_files(index: int, data: bytes, files: dict[str, bytes]) -> Snapshot:
    named = tuple(SnapshotFile(name, len(content), zlib.crc32(content)) for name, content in files.items())
    return Snapshot(index, 3, data, None, named)


def chunk_of(outgoing: Outgoing, limit: int, *, leader_term: int = 5) -> SnapshotChunk:
    return SnapshotChunk("s1", "s2", leader_term, 1, outgoing.index, *outgoing.chunk(limit))


class Follower:
    """What it has of files is written as it comes."""

    def __init__(self) -> None:
        self.incoming = Incoming()
        self.place: dict[str, bytes] = {"of another snapshot": b""}

    def take(self, chunk: SnapshotChunk) -> Snapshot | None:
        taken = self.incoming.take(chunk)
        if taken.begins:
            self.place = {}
        for piece in taken.pieces:
            assert len(self.place.setdefault(piece.name, b"")) == piece.offset
            self.place[piece.name] += piece.data
        return taken.snapshot


@given(st.integers(1, 9), st.binary(max_size=40), contents, st.data())
def test_a_snapshot_with_its_files_arrives_whatever_is_lost_doubled_late_or_begun_anew(
    index: int, data: bytes, files: dict[str, bytes], luck: st.DataObject
) -> None:
    snapshot = with_files(index, data, files)
    # They have grown since.
    grown = {name: content + b"more" for name, content in files.items()}
    outgoing = Outgoing(snapshot, lambda name, offset, length: grown[name][offset : offset + length])
    follower, sent, arrived = Follower(), [], None
    while arrived is None:
        chunk = chunk_of(outgoing, luck.draw(st.integers(9, 60)))
        sent.append(chunk)
        fate = luck.draw(st.sampled_from(("arrives", "arrives", "is lost", "is late", "dies")))
        if fate == "dies" and len(sent) < 20:
            follower = Follower()
        if fate == "is late":
            arrived = follower.take(luck.draw(st.sampled_from(sent)))
        elif fate == "arrives":
            arrived = follower.take(chunk)
        outgoing.advance(follower.incoming.received)
        if arrived is None and follower.incoming.received == 0:
            outgoing.advance(0)
    assert arrived == snapshot
    assert follower.place == files


@given(st.binary(max_size=40), contents, st.data())
def test_a_snapshot_that_comes_harmed_is_never_taken_and_begins_anew(
    data: bytes, files: dict[str, bytes], luck: st.DataObject
) -> None:
    snapshot = with_files(4, data, files)
    outgoing = Outgoing(snapshot, lambda name, offset, length: files[name][offset : offset + length])
    size, _, stream = outgoing.chunk(10_000)
    harmed = luck.draw(st.integers(0, size - 1))
    stream = stream[:harmed] + bytes([stream[harmed] ^ luck.draw(st.integers(1, 255))]) + stream[harmed + 1 :]
    follower, at = Follower(), 0
    while at < size:
        step = luck.draw(st.integers(9, 60))
        chunk = SnapshotChunk("s1", "s2", 5, 1, 4, size, at, stream[at : at + step])
        assert follower.take(chunk) is None
        at += len(chunk.data)
        if follower.incoming.received != at:
            break
    assert follower.incoming.received == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.binary(max_size=60)), max_size=8))
def test_chunks_of_anything_bring_nothing_and_never_crash(chunks: list[tuple[int, int, bytes]]) -> None:
    follower = Follower()
    for index, offset, data in chunks:
        size = max(60, offset + len(data))
        assert follower.take(SnapshotChunk("s1", "s2", 5, 1, index, size, offset, data)) is None
        assert follower.incoming.received < size


def test_a_record_of_another_snapshot_or_of_another_size_than_its_chunks_say_is_refused() -> None:
    record = encode(with_files(4, b"data", {"a": b"12345"}))
    size = len(record) + 5
    for index, whole in ((5, size), (4, size + 1), (4, size - 1), (4, len(record))):
        follower = Follower()
        assert follower.take(SnapshotChunk("s1", "s2", 5, 1, index, whole, 0, record)) is None
        assert follower.incoming.received == 0
    follower = Follower()
    assert follower.take(SnapshotChunk("s1", "s2", 5, 1, 4, size, 0, record)) is None
    assert follower.incoming.received == len(record)


def test_a_file_that_is_gone_is_an_error_and_no_empty_file() -> None:
    outgoing = Outgoing(with_files(4, b"", {"a": b"12345"}), _gone)
    assert outgoing.chunk(20)[2] == encode(outgoing.snapshot)[:20]
    outgoing.advance(len(encode(outgoing.snapshot)))
    with pytest.raises(FileGone):
        outgoing.chunk(20)


def _gone(name: str, offset: int, length: int) -> bytes:
    raise FileGone(name)
