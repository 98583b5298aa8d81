"""The body of a batch, byte for byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.message_batch import MAX_MESSAGES, BatchedMessage, decode_batch, encode_batch

FROM_GO = bytes.fromhex(
    "0000001d"  # 29 bytes
    "00000000 00000000"  # neither magic nor CRC
    "00000007"  # flag
    "00000001 61"  # a body of one byte: a
    "0006 4b455953016b"  # six bytes of properties: KEYS, \x01, k, and no separator behind the last
    "00000016 00000000 00000000 00000000 00000000 0000"  # an empty message
)
NAME = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=5)
MESSAGES = st.lists(
    st.builds(
        BatchedMessage, st.binary(max_size=9), st.dictionaries(NAME, NAME, max_size=3), st.integers(0, 2**31 - 1)
    ),
    min_size=1,
    max_size=5,
)


def test_the_messages_of_a_batch_are_read() -> None:
    assert decode_batch(FROM_GO) == (BatchedMessage(b"a", {"KEYS": "k"}, 7), BatchedMessage(b"", {}))


@given(MESSAGES)
def test_what_is_encoded_is_decoded_the_same(messages: list[BatchedMessage]) -> None:
    assert decode_batch(encode_batch(messages)) == tuple(messages)


@given(MESSAGES, st.data())
def test_a_batch_that_is_cut_is_fewer_messages_or_illegal(messages: list[BatchedMessage], data: st.DataObject) -> None:
    body = encode_batch(messages)
    cut = data.draw(st.integers(0, len(body) - 1))
    starts = [len(encode_batch(messages[:count])) for count in range(1, len(messages))]
    if cut in starts:
        assert decode_batch(body[:cut]) == tuple(messages[: starts.index(cut) + 1])
    else:
        with pytest.raises(RemotingError):
            decode_batch(body[:cut])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        struct.pack(">iiiiih", 23, 0, 0, 0, 0, 0),
        struct.pack(">iiiiih", 21, 0, 0, 0, 0, 0),
        struct.pack(">iiiiih", 22, 0, 0, 0, -1, 0),
        struct.pack(">iiiiih", 21, 0, 0, 0, 0, -1),
        struct.pack(">iiiiih", 22, 0, 0, 0, 2**31 - 1, 0),
        struct.pack(">iiiiih", 24, 0, 0, 0, 0, 2) + b"\xff\xfe",
        struct.pack(">iiiiih", 22, 0, 0, 0, 0, 0) * (MAX_MESSAGES + 1),
    ],
    ids=["nothing", "too long", "too short", "a body of -1", "properties of -1", "a huge body", "no text", "too many"],
)
def test_what_is_no_batch_is_illegal(body: bytes) -> None:
    with pytest.raises(RemotingError) as refusal:
        decode_batch(body)
    assert refusal.value.code == ResponseCode.MESSAGE_ILLEGAL
