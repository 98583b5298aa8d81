"""The layout byte for byte, and what is refused."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from system_under_test.dledger.entry import HEAD_BYTES, Entry
from system_under_test.dledger.record import (
    ENTRIES,
    IndexRecord,
    decode_entry,
    decode_index_record,
    encode_blank,
    encode_entry,
    encode_index_record,
)
from system_under_test.storage.errors import RecordInvalid

ENTRY = Entry(index=7, term=3, position=4096, body=b"hello", channel=2)
NUMBERS = "0000000000000007" + "0000000000000003" + "0000000000001000" + "00000002"


def test_an_entry_is_laid_out_byte_for_byte() -> None:
    data, chain = encode_entry(ENTRY, 0x1234)
    body_crc = "3610a686"
    assert chain == crc32(bytes.fromhex(NUMBERS + body_crc), 0x1234)
    assert data.hex() == "00000001" + "00000035" + NUMBERS + f"{chain:08x}" + body_crc + "00000005" + b"hello".hex()
    assert len(data) == ENTRY.size == HEAD_BYTES + 5
    assert decode_entry(b"xy" + data + b"z", 2, 0x1234) == (ENTRY, chain)
    assert decode_entry(data) == (ENTRY, chain)
    assert ENTRIES.check(b"xy" + data, 2, 4096) == len(data)
    assert ENTRIES.size(data, 0) == len(data)
    assert ENTRIES.size(data, len(data) - 7) == -1


def test_an_entry_without_a_body_is_read_as_it_was_written() -> None:
    entry = Entry(0, 0, 0, b"")
    data, chain = encode_entry(entry, 0)
    assert decode_entry(data, 0, 0) == (entry, chain)


def test_a_record_of_the_index_is_laid_out_byte_for_byte() -> None:
    data = encode_index_record(ENTRY)
    assert data.hex() == "00000001" + "0000000000001000" + "00000035" + NUMBERS[:32]
    assert decode_index_record(data) == IndexRecord(position=4096, size=53, index=7, term=3)


def test_a_blank_is_laid_out_byte_for_byte() -> None:
    assert encode_blank(12).hex() == "ffffffff" + "0000000c" + "00000000"
    assert ENTRIES.encode_blank(8).hex() == "ffffffff" + "00000008"
    assert ENTRIES.blank_size(b"x" + encode_blank(12), 1) == 12
    assert ENTRIES.blank_size(encode_blank(12), 5) == 0
    assert ENTRIES.blank_size(encode_entry(ENTRY, 0)[0], 0) == 0
    assert ENTRIES.size(encode_blank(12), 0) == 0
    assert ENTRIES.blank_size(struct.pack(">ii", -1, 7), 0) == 0


@pytest.mark.parametrize("at", range(ENTRY.size))
def test_an_entry_with_one_bit_harmed_anywhere_is_refused(at: int) -> None:
    data = bytearray(encode_entry(ENTRY, 9)[0])
    data[at] ^= 0x10
    with pytest.raises(RecordInvalid):
        decode_entry(bytes(data), 0, 9)


def test_an_entry_that_is_cut_misplaced_or_behind_another_one_is_refused() -> None:
    data, _ = encode_entry(ENTRY, 9)
    for size in range(len(data)):
        with pytest.raises(RecordInvalid):
            decode_entry(data[:size])
    with pytest.raises(RecordInvalid, match="follow"):
        decode_entry(data, 0, 8)
    with pytest.raises(RecordInvalid, match="belongs at 4096"):
        ENTRIES.check(data, 0, 4097)


@pytest.mark.parametrize("harmed", [b"", bytes(32), encode_index_record(ENTRY)[:31], encode_index_record(ENTRY) + b"x"])
def test_a_harmed_record_of_the_index_is_refused(harmed: bytes) -> None:
    with pytest.raises(RecordInvalid):
        decode_index_record(harmed)


@pytest.mark.parametrize(
    "fields", [(2, 0, 48, 0, 0), (1, -1, 48, 0, 0), (1, 0, 47, 0, 0), (1, 0, 48, -1, 0), (1, 0, 48, 0, -1)]
)
def test_a_record_of_the_index_with_a_number_that_makes_no_sense_is_refused(fields: tuple[int, ...]) -> None:
    with pytest.raises(RecordInvalid):
        decode_index_record(struct.pack(">iqiqq", *fields))
