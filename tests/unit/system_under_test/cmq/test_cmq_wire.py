"""What clients and nodes of CMQ say to each other, as bytes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.cmq import wire
from system_under_test.cmq.wire import MalformedAnswer, MalformedRequest, Pulled
from system_under_test.remoting.command import RemotingCommand

BODIES = st.lists(st.binary(max_size=40), min_size=1, max_size=16)
NUMBERS = st.integers(0, 2**64 - 1)


@given(BODIES)
def test_messages_come_out_of_a_request_as_they_went_in(bodies: list[bytes]):
    assert wire.bodies_of(wire.produce("q", bodies)) == bodies


@given(st.lists(NUMBERS, min_size=1, max_size=16))
def test_numbers_come_out_of_a_request_as_they_went_in(numbers: list[int]):
    assert wire.numbers_of(wire.ack("q", numbers)) == numbers


@given(st.lists(st.tuples(NUMBERS, st.binary(max_size=40))), NUMBERS)
def test_what_was_pulled_is_read_as_it_was_written(messages: list[tuple[int, bytes]], left: int):
    pulled = Pulled(tuple(messages), left)
    assert wire.decode_pulled(wire.encode_pulled(pulled)) == pulled


@given(st.binary(max_size=80))
def test_other_bytes_are_refused_and_nothing_else_happens(body: bytes):
    for read in (wire.bodies_of, wire.numbers_of):
        with suppress(MalformedRequest):
            read(RemotingCommand.request(wire.Request.PRODUCE, body=body))
    for decode in (wire.decode_produced, wire.decode_pulled, wire.decode_status):
        with suppress(MalformedAnswer):
            decode(body)


@pytest.mark.parametrize("count", [0, 17])
def test_a_request_carries_one_to_sixteen_messages(count: int):
    with pytest.raises(ValueError, match=f"1 to 16 messages, got {count}"):
        wire.produce("q", [b"m"] * count)
    with pytest.raises(MalformedRequest, match="expected 1 to 16 numbers"):
        wire.numbers_of(wire.ack("q", [7] * count))


def test_an_acknowledgement_is_answered_for_each_message():
    assert wire.decode_acknowledged(wire.acknowledged([True, False]), 2) == (True, False)
    for wrong in (b"\x01", b"\x01\x02"):
        with pytest.raises(MalformedAnswer, match="for each of 2 messages"):
            wire.decode_acknowledged(wrong, 2)


@pytest.mark.parametrize("most", ["", "-1", "1e3", "9" * 19, "٣"])
def test_a_field_that_is_no_number_is_named(most: str):
    with pytest.raises(MalformedRequest, match="field 'most': expected"):
        wire.number_field(RemotingCommand.request(wire.Request.PULL, {"most": most}), "most")
