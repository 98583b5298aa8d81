"""What a bookie keeps beside its journal is read as it was written, and nothing else is taken for it."""

from __future__ import annotations

import random

import pytest

from system_under_test.bookkeeper.bookie.checkpoint import (
    Checkpoint,
    LedgerNotes,
    decode_checkpoint,
    decode_place,
    encode_checkpoint,
    encode_place,
)
from system_under_test.bookkeeper.bookie.entry_logs import scan
from system_under_test.bookkeeper.bookie.index import (
    Index,
    IndexRecord,
    Location,
    decode_index,
    encode_index_record,
)
from system_under_test.bookkeeper.bookie.journal import Place
from system_under_test.bookkeeper.bookie.message import (
    AddRequest,
    BookieAnswer,
    BookieRequest,
    Code,
    ListRequest,
    ReadLacRequest,
    ReadManyRequest,
    ReadRequest,
    WriteLacRequest,
)
from system_under_test.bookkeeper.bookie.wire import (
    MalformedBookieCommand,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
)
from system_under_test.bookkeeper.entry import (
    MAX_PAYLOAD_BYTES,
    NOTHING,
    Digest,
    Entry,
    EntryCorrupt,
    decode_entry,
    encode_entry,
    ids_of,
)
from system_under_test.remoting.command import RemotingCommand
from system_under_test.storage.errors import RecordInvalid

ME = "00ab00000000cdef"
DIGEST = Digest()
ENTRY = Entry(7, 3, 2, 40, b"payload")


def test_an_entry_is_the_one_that_was_asked_for_or_corrupt() -> None:
    data = encode_entry(ENTRY, DIGEST)
    assert decode_entry(data, DIGEST, 7, 3) == ENTRY
    assert ids_of(data) == (7, 3)
    for ledger, entry in ((7, 4), (8, 3), (-1, 3), (7, -1)):
        with pytest.raises(EntryCorrupt):
            decode_entry(data, DIGEST, ledger, entry)
    for at in range(len(data)):
        with pytest.raises(EntryCorrupt):
            decode_entry(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], DIGEST, 7, 3)
    for size in range(len(data)):
        with pytest.raises(EntryCorrupt):
            decode_entry(data[:size], DIGEST, 7, 3)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(-1, 0, NOTHING, 0, b""),
        Entry(0, -1, NOTHING, 0, b""),
        Entry(0, 0, -2, 0, b""),
        Entry(0, 0, NOTHING, 1, b"ab"),
        Entry(0, 0, NOTHING, 2 * MAX_PAYLOAD_BYTES, bytes(MAX_PAYLOAD_BYTES + 1)),
    ],
    ids=lambda entry: f"{entry.ledger},{entry.entry},{entry.lac},{entry.length}",
)
def test_an_entry_that_cannot_be_is_not_encoded(entry: Entry) -> None:
    with pytest.raises(ValueError, match="there can be no entry"):
        encode_entry(entry, DIGEST)


def test_an_index_is_like_a_dictionary() -> None:
    draw = random.Random(1)
    index, expected = Index(), {}
    for _ in range(3_000):
        ledger, entry = draw.randrange(5), draw.randrange(400) if draw.random() < 0.5 else draw.randrange(30)
        location = Location(draw.randrange(2**20), draw.randrange(2**32), draw.randrange(2**32))
        index.put(ledger, entry, location)
        expected[ledger, entry] = location
    for ledger in range(6):
        held = sorted(entry for of, entry in expected if of == ledger)
        assert index.entries(ledger, 0, 1_000) == held
        assert index.entries(ledger, 50, 3) == [entry for entry in held if entry >= 50][:3]
        assert index.last(ledger) == (held[-1] if held else None)
        for entry in range(-1, 401):
            assert index.find(ledger, entry) == expected.get((ledger, entry))
    assert index.ledgers() == [0, 1, 2, 3, 4]


def test_the_index_of_a_log_is_kept_and_can_be_made_again_of_the_log() -> None:
    entries = [Entry(1, 0, NOTHING, 3, b"abc"), Entry(9, 4, 2, 100, b""), Entry(1, 1, 0, 70, b"x" * 60)]
    data, records = b"", []
    for entry in entries:
        encoded = encode_entry(entry, DIGEST)
        records.append(IndexRecord(entry.ledger, entry.entry, len(data) + 4, len(encoded)))
        data += len(encoded).to_bytes(4, "big") + encoded
    assert list(scan(data, DIGEST)) == records
    assert list(decode_index(b"".join(map(encode_index_record, records)))) == records
    for at in range(len(data)):
        harmed = data[:at] + bytes([data[at] ^ 2]) + data[at + 1 :]
        with pytest.raises(RecordInvalid, match=r"^offset \d+: "):
            list(scan(harmed, DIGEST))
    with pytest.raises(RecordInvalid):
        decode_index(bytes(23))
    with pytest.raises(RecordInvalid):
        list(decode_index(encode_index_record(IndexRecord(-1, 0, 0, 0))))


def test_a_checkpoint_is_read_as_it_was_written() -> None:
    notes = {1: LedgerNotes(), 9: LedgerNotes(5, True, False), 12: LedgerNotes(NOTHING, True, True)}
    checkpoint = Checkpoint(start=Place(12_345, 77), logs=3, is_synced=False, ledgers=notes)
    data = encode_checkpoint(checkpoint)
    assert decode_checkpoint(data) == checkpoint
    for size in range(len(data)):
        if (size - 22) % 17 or size < 22:
            with pytest.raises(RecordInvalid):
                decode_checkpoint(data[:size])
    for harmed in (b"\2" + data[1:], data + data[-17:], data[:-1] + b"\7"):
        with pytest.raises(RecordInvalid):
            decode_checkpoint(harmed)


def test_a_place_is_read_as_it_was_written() -> None:
    assert decode_place(encode_place(Place(9, 2**32 - 1))) == Place(9, 2**32 - 1)
    for harmed in (b"", bytes(11), b"\xff" * 12):
        with pytest.raises(RecordInvalid):
            decode_place(harmed)


REQUESTS: tuple[tuple[BookieRequest, BookieAnswer], ...] = (
    (AddRequest(bookie=ME, data=b"entry"), BookieAnswer(Code.FENCED)),
    (AddRequest(bookie=ME, data=b"", is_recovery=True), BookieAnswer(Code.OK)),
    (ReadRequest(bookie=ME, ledger=7, entry=3), BookieAnswer(Code.OK, b"entry")),
    (ReadRequest(bookie=ME, ledger=7, entry=3, fences=True), BookieAnswer(Code.NO_SUCH_ENTRY)),
    (ReadLacRequest(bookie=ME, ledger=7), BookieAnswer(Code.NO_SUCH_LEDGER)),
    (ReadLacRequest(bookie=ME, ledger=7, fences=True), BookieAnswer(Code.OK, lac=12)),
    (WriteLacRequest(bookie=ME, ledger=7, lac=3), BookieAnswer(Code.READ_ONLY)),
    (ListRequest(bookie=ME, ledger=7, first=3), BookieAnswer(Code.OK, entries=(3, 4, 9))),
    (ListRequest(bookie=ME, ledger=7), BookieAnswer(Code.UNKNOWN)),
    (ReadManyRequest(bookie=ME, ledger=7, first=3, last=9), BookieAnswer(Code.OK, many=((3, b"entry"), (9, b"")))),
    (ReadManyRequest(bookie=ME, ledger=7, first=3, last=9), BookieAnswer(Code.UNKNOWN)),
)


@pytest.mark.parametrize(("request_", "answer"), REQUESTS, ids=lambda value: type(value).__name__)
def test_requests_and_answers_are_read_as_they_were_written(request_: BookieRequest, answer: BookieAnswer) -> None:
    command = encode_request(request_)
    assert decode_request(RemotingCommand.decode(command.encode()[4:])) == request_
    answered = RemotingCommand.decode(encode_answer(request_, answer).encode()[4:])
    assert decode_answer(request_, answered) == answer


def test_what_is_no_request_and_no_answer_is_refused() -> None:
    read = ReadRequest(bookie=ME, ledger=7, entry=3)
    command = encode_request(read)
    for code, body in ((60_009, command.body), (command.code, command.body[:-1]), (60_001, b"short")):
        with pytest.raises(MalformedBookieCommand):
            decode_request(RemotingCommand.request(code, body=body))
    with pytest.raises(MalformedBookieCommand, match="there is no ledger -7"):
        decode_request(encode_request(ReadRequest(bookie=ME, ledger=-7, entry=3)))
    with pytest.raises(MalformedBookieCommand, match="-2 is the LAC"):
        decode_request(encode_request(WriteLacRequest(bookie=ME, ledger=7, lac=-2)))
    with pytest.raises(MalformedBookieCommand, match="answers 13"):
        decode_answer(read, RemotingCommand.response(13))
    with pytest.raises(MalformedBookieCommand):
        decode_answer(ReadLacRequest(bookie=ME, ledger=7), RemotingCommand.response(0, body=b"abc"))
    with pytest.raises(MalformedBookieCommand):
        decode_answer(ListRequest(bookie=ME, ledger=7), RemotingCommand.response(0, body=b"abc"))
    many = ReadManyRequest(bookie=ME, ledger=7, first=3, last=9)
    body = encode_answer(many, BookieAnswer(Code.OK, many=((3, b"entry"),))).body
    for cut in range(1, len(body)):
        with pytest.raises(MalformedBookieCommand):
            decode_answer(many, RemotingCommand.response(0, body=body[:cut]))
