"""Memberships: what may be changed, and their form as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.raft.membership import (
    AddLearner,
    Change,
    Membership,
    Promote,
    Remove,
    UnfitChange,
    decode,
    encode,
)

THREE = Membership(voters={"a": "a:1", "b": "b:1"}, learners={"c": "c:1"})

nodes = st.text(max_size=5)
memberships = st.dictionaries(nodes, st.tuples(nodes, st.booleans()), min_size=1).map(
    lambda members: Membership(
        voters={node: address for node, (address, votes) in members.items() if votes} or {"last": ""},
        learners={node: address for node, (address, votes) in members.items() if not votes and node != "last"},
    )
)


@given(memberships)
def test_what_is_written_is_what_is_read(membership: Membership) -> None:
    assert decode(encode(membership)) == membership


@given(st.one_of(st.binary(max_size=60), memberships.map(lambda m: encode(m)[:-1])))
def test_garbage_is_refused_and_never_crashes(garbage: bytes) -> None:
    with pytest.raises(ValueError, match="no membership"):
        decode(garbage)


@pytest.mark.parametrize(
    "garbage",
    [
        b"{}",
        b"[]",
        b'{"voters":{},"learners":{}}',
        b'{"voters":{"a":1},"learners":{}}',
        b'{"voters":["a"],"learners":{}}',
        b'{"voters":{"a":""},"learners":{"a":""}}',
    ],
)
def test_json_that_is_no_membership_is_refused(garbage: bytes) -> None:
    with pytest.raises(ValueError, match="no membership"):
        decode(garbage)


def test_one_node_at_a_time_comes_votes_and_goes() -> None:
    added = THREE.changed(AddLearner("d", "d:1"))
    assert added == Membership(voters=THREE.voters, learners={"c": "c:1", "d": "d:1"})
    promoted = added.changed(Promote("d"))
    assert promoted == Membership(voters={**THREE.voters, "d": "d:1"}, learners=THREE.learners)
    assert promoted.changed(Remove("d")) == THREE
    assert THREE.changed(Remove("c")) == Membership(voters=THREE.voters)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (AddLearner("a", "a:2"), "already"),
        (AddLearner("c", "c:2"), "already"),
        (Promote("a"), "no learner"),
        (Promote("d"), "no learner"),
        (Remove("d"), "no member"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change: Change, why: str) -> None:
    with pytest.raises(UnfitChange, match=why):
        THREE.changed(change)


def test_the_last_voter_stays_even_if_there_are_learners() -> None:
    with pytest.raises(UnfitChange, match="only one"):
        Membership(voters={"a": ""}, learners={"b": ""}).changed(Remove("a"))
