"""Snapshots as records: what is written is what is read, and nothing else is."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.raft.membership import Membership
from system_under_test.raft.message import MalformedMessage
from system_under_test.raft.snapshot import Snapshot, SnapshotFile, decode, encode

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
