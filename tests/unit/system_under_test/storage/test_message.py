"""The layout byte for byte, and what is refused."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.storage.errors import MessageTooLarge
from system_under_test.storage.message import (
    MessageInvalid,
    check_message,
    decode_header,
    decode_message,
    encode_blank,
    encode_host,
    encode_message,
    encode_properties,
    message_bytes,
    properties_of,
)

FIELDS = (
    "0000008b"  # total size 139
    "daa320a7"  # magic
    "3610a686"  # CRC of the body
    "00000003"  # queue id
    "00000001"  # flag
    "0000000000000007"  # queue offset
    "0000000000001000"  # physical offset
    "00000002"  # sys flag
    "0000018bcfe5687b"  # born timestamp
    "7f00000100001388"  # born host 127.0.0.1:5000
    "0000018bcfe569c8"  # store timestamp
    "0a00000200002a9f"  # store host 10.0.0.2:10911
    "00000004"  # reconsume times
    "0000000000000005"  # prepared transaction offset
    "00000005" + b"hello".hex() + "06" + b"orders".hex() + "0025" + b"KEYS\x01k\x02TAGS\x01TagA\x02".hex()
)


def encoded(body: bytes = b"hello", physical_offset: int = 4096) -> bytes:
    return encode_message(
        topic=b"orders",
        queue_id=3,
        queue_offset=7,
        physical_offset=physical_offset,
        body=body,
        properties=encode_properties({"KEYS": "k", "TAGS": "TagA"}),
        born_timestamp_ms=1700000000123,
        store_timestamp_ms=1700000000456,
        born_host=encode_host("127.0.0.1", 5000),
        store_host=encode_host("10.0.0.2", 10911),
        flag=1,
        sys_flag=2,
        reconsume_times=4,
        prepared_transaction_offset=5,
    )


def test_a_message_has_the_layout_byte_for_byte() -> None:
    assert encoded()[:-20].hex() == FIELDS


def test_the_last_property_is_the_crc_of_all_before_it_with_its_digits_backwards() -> None:
    digits = f"{crc32(bytes.fromhex(FIELDS)) & 0x7FFFFFFF:010d}"[::-1]
    assert encoded()[-20:] == b"__CRC32#\x01" + digits.encode() + b"\x02"


def test_a_decoded_message_is_what_was_encoded_wherever_it_stands() -> None:
    message = decode_message(b"xyz" + encoded() + b"rest", 3)
    assert (message.topic, message.queue_id, message.queue_offset) == ("orders", 3, 7)
    assert (message.physical_offset, message.size, message.body) == (4096, 139, b"hello")
    assert message.properties == {"KEYS": "k", "TAGS": "TagA"}
    assert (message.born_timestamp_ms, message.store_timestamp_ms) == (1700000000123, 1700000000456)


def test_the_header_alone_gives_what_dispatch_needs() -> None:
    header = decode_header(b"xyz" + encoded(), 3)
    assert header == (
        4096,
        139,
        "orders",
        3,
        7,
        2598919,
        2,
        1_700_000_000_456,
        ("k",),
    )  # 2598919 is Java's "TagA".hashCode()


def test_the_size_is_known_before_encoding() -> None:
    assert message_bytes(b"orders", b"hello", encode_properties({"KEYS": "k", "TAGS": "TagA"})) == len(encoded())


@pytest.mark.parametrize(("topic", "properties"), [(b"t" * 128, b""), (b"t", b"p" * 32767)])
def test_what_a_length_field_cannot_hold_is_refused(topic: bytes, properties: bytes) -> None:
    with pytest.raises(MessageTooLarge):
        message_bytes(topic, b"", properties)


def test_a_blank_is_its_size_its_magic_and_zeros() -> None:
    assert encode_blank(12).hex() == "0000000ccbd4319400000000"


def test_every_single_torn_byte_is_noticed() -> None:
    whole = encoded()
    for position in range(len(whole)):
        torn = bytearray(whole)
        torn[position] ^= 0x40
        with pytest.raises(MessageInvalid):
            check_message(bytes(torn), 0, 4096)


@given(st.integers(0, 138), st.integers(1, 139), st.binary(max_size=200))
def test_a_message_with_a_hole_of_zeros_is_never_accepted(start: int, length: int, body: bytes) -> None:
    whole = encoded(body)
    holed = whole[:start] + bytes(len(whole[start : start + length])) + whole[start + length :]
    if holed != whole:
        with pytest.raises(MessageInvalid):
            check_message(holed, 0, 4096)


def test_a_cut_message_a_message_of_another_place_and_zeros_are_refused() -> None:
    whole = encoded()
    for length in range(len(whole)):
        with pytest.raises(MessageInvalid):
            check_message(whole[:length], 0, 4096)
    with pytest.raises(MessageInvalid, match="belongs at 4096"):
        check_message(whole, 0, 4097)
    with pytest.raises(MessageInvalid):
        check_message(bytes(200), 0, 0)


def without_crc() -> bytearray:
    """As RocketMQ's own brokers write it unless `enabledAppendPropCRC` is set."""
    bare = bytearray.fromhex(FIELDS)
    struct.pack_into(">i", bare, 0, len(bare))
    struct.pack_into(">H", bare, 88 + 5 + 1 + 6, len(bare) - (88 + 5 + 1 + 6 + 2))
    return bare


def test_a_message_of_a_broker_that_appends_no_crc_is_read_with_all_its_properties() -> None:
    bare = bytes(without_crc())
    assert check_message(bare, 0, 4096) == len(bare)
    message = decode_message(bare, 0)
    assert (message.body, message.properties) == (b"hello", decode_message(encoded(), 0).properties)
    assert decode_header(bare, 0).keys == decode_header(encoded(), 0).keys
    assert properties_of(bare) == message.properties


def test_a_message_that_has_lost_its_crc_is_refused_though_its_body_is_right() -> None:
    whole = bytearray(encoded())
    for position in range(len(whole) - 20, len(whole) - 11):
        for changed in (0, 1, 0x20, 0x41, 0xFF):
            torn = bytearray(whole)
            torn[position] = changed
            if torn != whole:
                with pytest.raises(MessageInvalid):
                    check_message(bytes(torn), 0, 4096)


@pytest.mark.parametrize("properties", [b"\x00", b"KEYS\x01k\x00", b"KEYS\x01\xff"])
def test_properties_that_no_broker_writes_are_refused_where_no_crc_is_behind_them(properties: bytes) -> None:
    bare = without_crc()[: 88 + 5 + 1 + 6 + 2] + properties
    struct.pack_into(">i", bare, 0, len(bare))
    struct.pack_into(">H", bare, 88 + 5 + 1 + 6, len(properties))
    with pytest.raises(MessageInvalid):
        check_message(bytes(bare), 0, 4096)


@pytest.mark.parametrize(("topic", "properties"), [(b"\xff", b""), (b"T", b"TAGS\x01\xff\x02")])
def test_a_whole_message_whose_words_are_no_text_is_refused_by_who_reads_them(topic: bytes, properties: bytes) -> None:
    whole = encode_message(
        topic=topic,
        queue_id=0,
        queue_offset=0,
        physical_offset=0,
        body=b"",
        properties=properties,
        born_timestamp_ms=0,
        store_timestamp_ms=0,
        born_host=bytes(8),
        store_host=bytes(8),
    )
    with pytest.raises(MessageInvalid, match="no text"):
        decode_message(whole, 0)
