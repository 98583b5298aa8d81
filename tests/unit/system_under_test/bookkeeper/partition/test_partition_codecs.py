"""Positions, entries' payloads, lists of ledgers and answers of brokers, from their bytes and back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.bookkeeper.partition import wire
from system_under_test.bookkeeper.partition.ledger_list import LedgerList, MalformedList, decode_list, encode_list
from system_under_test.bookkeeper.partition.partition import Found
from system_under_test.bookkeeper.partition.payload import MalformedPayload, decode_messages, encode_messages
from system_under_test.bookkeeper.partition.position import (
    MOST_ENTRIES,
    MOST_MESSAGES,
    MOST_OFFSET,
    Position,
    position_of,
)
from system_under_test.remoting.command import RemotingCommand

positions = st.builds(
    Position,
    st.integers(0, 1 << 23),
    st.integers(0, MOST_ENTRIES - 1),
    st.integers(0, MOST_MESSAGES - 1),
)


@given(st.lists(positions, min_size=2))
def test_offsets_are_in_the_order_of_positions_and_lead_back_to_them(some: list[Position]) -> None:
    assert [position_of(position.offset) for position in some] == some
    for one, other in pairwise(sorted(some)):
        assert one.offset <= other.offset <= MOST_OFFSET
        assert (one.offset == other.offset) == (one == other)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=MOST_MESSAGES))
def test_messages_of_an_entry_come_back(messages: list[bytes]) -> None:
    assert decode_messages(encode_messages(messages)) == messages


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"", "too few"),
        (b"\0", "too few"),
        (b"\0\0", "not 0"),
        (b"\xff\xff", "not 65535"),
        (b"\0\1\0\0\0", "length is missing"),
        (b"\0\1\0\0\0\2a", "beyond its entry"),
        (encode_messages([b"a"]) + b"b", "1 bytes follow"),
    ],
)
def test_a_payload_that_is_no_messages_is_refused(payload: bytes, complaint: str) -> None:
    with pytest.raises(MalformedPayload, match=complaint):
        decode_messages(payload)


@pytest.mark.parametrize("count", [0, MOST_MESSAGES + 1])
def test_an_entry_takes_so_many_messages_and_no_more(count: int) -> None:
    with pytest.raises(ValueError, match=f"got {count}"):
        encode_messages([b"a"] * count)


@given(st.lists(st.integers(0, 10**9), unique=True).map(tuple))
def test_a_list_of_ledgers_comes_back(ledgers: tuple[int, ...]) -> None:
    assert decode_list(encode_list(ledgers), 7) == LedgerList(ledgers, 7)


@pytest.mark.parametrize("value", ["", "{", "[]", "{}", '{"ledgers":1}', '{"ledgers":[-1]}', '{"ledgers":[1,1]}'])
def test_a_value_that_lists_no_ledgers_is_refused(value: str) -> None:
    with pytest.raises(MalformedList):
        decode_list(value, 1)


@given(st.lists(st.tuples(st.integers(0, MOST_OFFSET), st.binary(max_size=20))).map(tuple), st.integers(0, MOST_OFFSET))
def test_what_a_read_found_comes_back(messages: tuple[tuple[int, bytes], ...], next_offset: int) -> None:
    result = Found(messages, next_offset)
    assert wire.decode_found(wire.found(result)) == result
    assert wire.decode_sent(wire.sent(next_offset)) == next_offset


@pytest.mark.parametrize("body", [b"", b"1234567", b"12345678" + b"1", wire.found(Found(((1, b"ab"),), 2))[:-1]])
def test_an_answer_that_was_cut_is_refused(body: bytes) -> None:
    with pytest.raises(wire.MalformedAnswer):
        wire.decode_found(body)


@pytest.mark.parametrize("body", [b"", b"1234567", b"123456789"])
def test_an_offset_of_other_than_eight_bytes_is_refused(body: bytes) -> None:
    with pytest.raises(wire.MalformedAnswer):
        wire.decode_sent(body)


@pytest.mark.parametrize("offset", ["", "-1", "1.5", "٣", str(MOST_OFFSET + 1), "9" * 20])
def test_a_request_for_no_offset_is_refused(offset: str) -> None:
    with pytest.raises(wire.MalformedRequest, match="field 'offset'"):
        wire.offset_of(RemotingCommand.request(wire.Request.READ, {"partition": "p", "offset": offset}))


def test_a_request_names_its_partition_and_its_offset() -> None:
    command = wire.read("p", MOST_OFFSET)
    assert (wire.partition_of(command), wire.offset_of(command)) == ("p", MOST_OFFSET)
    with pytest.raises(wire.MalformedRequest, match="field 'partition'"):
        wire.partition_of(RemotingCommand.request(wire.Request.SEAL))
