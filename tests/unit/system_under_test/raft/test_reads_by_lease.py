"""What a lease lets a leader do, and what it costs the others: each story with a twin without a lease."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.raft.core import Raft, Role
from system_under_test.raft.event import Read, Receive, Transfer
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import (
    HardState,
    PreVoteReply,
    PreVoteRequest,
    SuccessorVoteRequest,
    VoteReply,
    VoteRequest,
)
from system_under_test.raft.snapshot import NOTHING
from tests.unit.system_under_test.raft.raft_stage import SECOND, TIMING, Stage, entries

LEASE_NS = 8 * SECOND // 10
WITH_LEASE = replace(TIMING, lease_ns=LEASE_NS)


def led_by_a(lease: bool = True) -> Stage:
    """A round of its leader is confirmed."""
    stage = Stage({"a": "1", "b": "1", "c": "1"}, timing=WITH_LEASE if lease else TIMING)
    stage.elect("a", "b", "c")
    stage.deliver()
    stage.beat("a")
    stage.deliver()
    return stage


def reads_at_once(stage: Stage) -> bool:
    """Otherwise it asks the others."""
    effects = stage.nodes["a"].step(Read((7,)), stage.now_ns)
    assert bool(effects.reads) is not bool(effects.appends)
    return effects.reads == [7]


@pytest.mark.parametrize("lease", [True, False])
def test_a_leader_reads_without_asking_as_long_as_its_lease_goes(lease: bool) -> None:
    stage = led_by_a(lease)
    stage.now_ns += LEASE_NS - 1
    assert reads_at_once(stage) is lease
    stage.now_ns += 1
    assert not reads_at_once(stage)


def test_a_lease_goes_from_when_the_others_were_asked_and_not_from_their_answers() -> None:
    stage = led_by_a()
    stage.beat("a")
    asked_ns = stage.now_ns
    stage.now_ns += 3 * SECOND // 10
    stage.deliver()
    stage.now_ns = asked_ns + LEASE_NS
    assert not reads_at_once(stage)


def test_a_new_leader_has_no_lease_before_a_majority_has_confirmed_a_round() -> None:
    stage = Stage({"a": "1", "b": "1", "c": "1"}, timing=WITH_LEASE)
    stage.elect("a", "b", "c")
    stage.deliver()
    assert stage.nodes["a"].is_active
    assert not reads_at_once(stage)


@pytest.mark.parametrize("lease", [True, False])
@pytest.mark.parametrize("after_ns", [SECOND - 1, SECOND])
def test_who_starts_anew_may_have_confirmed_a_lease_and_votes_for_nobody_until_it_is_over(
    lease: bool, after_ns: int
) -> None:
    raft = Raft(
        node="b",
        membership=Membership(voters={"a": "", "b": "", "c": ""}),
        timing=WITH_LEASE if lease else TIMING,
        hard_state=HardState(1, "a"),
        snapshot=NOTHING,
        entries=entries("1"),
        now_ns=5 * SECOND,
        election_timeout_ns=9 * SECOND,
    )
    pre = raft.step(Receive(PreVoteRequest("c", "b", 2, 1, 1)), 5 * SECOND + after_ns)
    may_vote = not lease or after_ns == SECOND
    assert pre.messages == [PreVoteReply("b", "c", 2 if may_vote else 1, may_vote)]
    voted = raft.step(Receive(VoteRequest("c", "b", 2, 1, 1)), 5 * SECOND + after_ns)
    assert voted.messages == ([VoteReply("b", "c", 2, True)] if may_vote else [])
    assert raft.term == (2 if may_vote else 1)


@pytest.mark.parametrize("lease", [True, False])
def test_a_request_for_a_vote_that_comes_late_changes_nothing_where_the_leader_is_heard_again(lease: bool) -> None:
    stage = led_by_a(lease)
    stage.step("b", Receive(VoteRequest("c", "b", 9, 9, 9)))
    assert (stage.nodes["b"].term == 9) is not lease
    stage.step("a", Receive(VoteRequest("c", "a", 9, 9, 9)))
    assert (stage.nodes["a"].role is Role.LEADER) is lease


def test_a_successor_gets_votes_of_those_who_hear_the_leader() -> None:
    stage = led_by_a()
    term = stage.nodes["a"].term
    stage.step("a", Transfer("b"))
    stage.deliver()
    assert stage.nodes["b"].role is Role.LEADER and stage.nodes["b"].term == term + 1
    again = led_by_a()
    again.step("c", Receive(SuccessorVoteRequest("b", "c", term + 1, 9, 9)))
    assert again.nodes["c"].term == term + 1


def test_a_leader_that_asked_another_one_to_stand_has_no_lease_any_more_even_if_that_does_not_happen() -> None:
    stage = led_by_a()
    assert reads_at_once(stage)
    stage.step("a", Transfer("b"))
    stage.wire.clear()
    for _ in range(20):
        stage.beat("a")
        stage.deliver(lambda message: type(message).__name__ != "TimeoutNow")
    leader = stage.nodes["a"]
    assert leader.role is Role.LEADER and leader.transferee is None
    assert not reads_at_once(stage)


def test_confirmed_rounds_are_forgotten_also_while_nobody_reads() -> None:
    stage = led_by_a()
    for _ in range(50):
        stage.beat("a")
        stage.deliver()
    assert len(stage.nodes["a"]._lease._begins) <= 2
