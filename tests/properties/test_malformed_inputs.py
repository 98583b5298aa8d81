"""Whatever comes in: a decoder reads it, or raises the error that it documents. Nothing else ever gets past it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system_under_test.remoting.command import RemotingCommand, frame_length
from system_under_test.remoting.json_body import MAX_NESTING, decode_json
from tests.references.malformed_inputs import CODECS, SET, Codec, Undocumented, shares, try_out

INPUTS = 100_000
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(-(2**31), 2**31 - 1)


def test_a_hundred_thousand_malformed_inputs_raise_nothing_but_what_is_documented() -> None:
    total = accepted = 0
    for codec, count in shares(INPUTS):
        taken = try_out(codec, 1, count)
        assert taken < count, f"{codec.name} took every input: none was malformed"
        total, accepted = total + count, accepted + taken
    assert total >= INPUTS
    assert total / 5 < accepted < 4 * total / 5, "inputs are to be on both sides of what is well-formed"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_million_more(seed: int) -> None:
    for codec, count in shares(INPUTS):
        try_out(codec, seed, count)


def careless(read: Callable[[bytes], Any], *refuses: type[Exception]) -> Codec:
    """A decoder of the body in which a SyncStateSet is proposed."""
    return Codec(name="careless", decode=read, refuses=refuses, samples=((SET.to_body(),),))


def test_a_decoder_that_lets_nested_brackets_through_is_noticed() -> None:
    with pytest.raises(Undocumented, match="RecursionError"):
        try_out(careless(json.loads, ValueError), 1, 20_000)


def test_a_decoder_that_lets_infinity_through_is_noticed() -> None:
    codec = careless(
        lambda body: int(json.loads(body)["syncStateSetEpoch"]), ValueError, KeyError, TypeError, RecursionError
    )
    with pytest.raises(Undocumented, match="OverflowError"):
        try_out(codec, 1, 20_000)


def test_a_decoder_that_raises_what_it_does_not_document_is_noticed() -> None:
    frames = next(codec for codec in CODECS if codec.name == "command")
    with pytest.raises(Undocumented, match="MalformedFrame"):
        try_out(replace(frames, refuses=()), 1, 100)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * (MAX_NESTING + 1) + b"]" * (MAX_NESTING + 1),
        b'{"a":' * 100_000,
        b'["\\"' * 100_000,
        b'"\\"' * 100_000 + b"[" * 100,
        b"NaN",
        b"[-Infinity]",
        b"1e999",
        b"9223372036854775808",
        b"9" * 5_000,
        b"\xff",
        b"",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_a_body_beyond_the_bounds_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the JSON decoder has to say of it
        decode_json(body)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(JSON, st.integers(0, MAX_NESTING - 10))
def test_a_body_within_the_bounds_is_read_as_it_was_written(value: Any, depth: int) -> None:
    for _ in range(depth):
        value = [value]
    assert decode_json(json.dumps(value).encode()) == value
    assert decode_json(json.dumps("[" * 200).encode()) == "[" * 200


@settings(max_examples=200, deadline=None)
@given(
    st.builds(
        RemotingCommand,
        NUMBER,
        NUMBER,
        st.integers(0, 3),
        st.none() | TEXT,
        st.dictionaries(TEXT, TEXT, max_size=4),
        st.binary(max_size=40),
    )
)
def test_a_command_is_read_as_it_was_written(command: RemotingCommand) -> None:
    frame = command.encode()
    assert frame_length(frame[:4]) == len(frame) - 4
    assert RemotingCommand.decode(frame[4:]) == command
