"""Raft's messages as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.raft import membership as memberships
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    ChunkTaken,
    Entry,
    Greeting,
    Kind,
    MalformedMessage,
    Message,
    PreVoteReply,
    PreVoteRequest,
    SnapshotChunk,
    SuccessorVoteRequest,
    TimeoutNow,
    VoteReply,
    VoteRequest,
    decode,
    decode_greeting,
    encode,
    encode_greeting,
    frame_length,
)

number = st.integers(0, 2**63 - 1)
groups = st.integers(0, 2**32 - 1)
name = st.text(max_size=20)
ends = st.tuples(name, st.just("me"), number)


members = st.dictionaries(name, name, min_size=1).map(lambda voters: memberships.encode(Membership(voters=voters)))
bodies = st.one_of(
    st.tuples(st.binary(max_size=50), st.just(Kind.COMMAND)), st.tuples(members, st.just(Kind.MEMBERSHIP))
)


@st.composite
def appends(draw: st.DrawFn) -> Append:
    previous = draw(st.integers(0, 2**40))
    data = draw(st.lists(st.tuples(number, bodies), max_size=5))
    entries = tuple(Entry(previous + 1 + place, term, *body) for place, (term, body) in enumerate(data))
    return Append(*draw(ends), draw(number), previous, draw(number), draw(number), entries)


messages = st.one_of(
    appends(),
    st.builds(lambda e, a, b: AppendAccepted(*e, a, b), ends, number, number),
    st.builds(lambda e, a, b, c, d: AppendRefused(*e, a, b, c, d), ends, number, number, number, number),
    st.builds(lambda e, a, b: VoteRequest(*e, a, b), ends, number, number),
    st.builds(lambda e, a, b: PreVoteRequest(*e, a, b), ends, number, number),
    st.builds(lambda e, a, b: SuccessorVoteRequest(*e, a, b), ends, number, number),
    st.builds(
        lambda e, a, b, c, data, d: SnapshotChunk(*e, a, b, c + len(data) + d, c, data),
        *(ends, number, number, st.integers(0, 2**20), st.binary(max_size=50), st.integers(0, 2**20)),
    ),
    st.builds(lambda e: TimeoutNow(*e), ends),
    st.builds(lambda e, a, b, c: ChunkTaken(*e, a, b, c), ends, number, number, number),
    st.builds(lambda e, yes: VoteReply(*e, yes), ends, st.booleans()),
    st.builds(lambda e, yes: PreVoteReply(*e, yes), ends, st.booleans()),
)


@given(groups, messages)
def test_what_is_written_is_what_is_read(group: int, message: Message) -> None:
    frame = encode(group, message)
    assert frame_length(frame[:4]) == len(frame) - 4
    assert decode(frame[4:], "me") == (group, message)


@given(messages, st.data())
def test_a_frame_cut_short_is_refused_or_is_another_message_but_never_a_crash(
    message: Message, data: st.DataObject
) -> None:
    frame = encode(7, message)[4:]
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    with pytest.raises(MalformedMessage):
        decode(cut, "me")


@given(st.binary(max_size=80))
def test_garbage_is_refused_and_never_crashes(garbage: bytes) -> None:
    try:
        decode(garbage, "me")
    except MalformedMessage:
        return
    assert garbage[4] in range(1, 11)


def test_a_term_that_none_can_follow_is_refused() -> None:
    for term in (2**63, 2**64 - 1):
        with pytest.raises(MalformedMessage, match="no term can follow"):
            decode(encode(7, VoteReply("c1", "me", term, False))[4:], "me")
    assert decode(encode(7, VoteReply("c1", "me", 2**63 - 1, False))[4:], "me")[1].term == 2**63 - 1


@given(name.filter(bool), name.filter(bool), st.integers(0, 65535))
def test_a_greeting_says_who_speaks_and_where_it_is_reached(node: str, host: str, port: int) -> None:
    greeting = Greeting(node, f"{host}:{port}")
    frame = encode_greeting(greeting)
    assert frame_length(frame[:4]) == len(frame) - 4
    assert decode_greeting(frame[4:]) == greeting


@given(st.one_of(st.binary(max_size=80), messages.map(lambda message: encode(7, message)[4:])))
def test_what_is_no_greeting_is_refused_and_never_crashes(frame: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_greeting(frame)


def test_a_membership_that_is_none_is_refused_before_it_comes_into_a_log() -> None:
    append = Append("c1", "me", 3, 9, 5, 2, 4, (Entry(6, 3, b"{}", Kind.MEMBERSHIP),))
    with pytest.raises(MalformedMessage, match="membership"):
        decode(encode(7, append)[4:], "me")
