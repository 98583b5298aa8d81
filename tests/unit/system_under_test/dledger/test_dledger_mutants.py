"""Each planted bug does the wrong thing where the healthy part does the right one, and its group serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from system_under_test.dledger import mutants
from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.event import Append, Effects, HardState, Receive, Tick
from system_under_test.dledger.message import Code, HeartbeatRequest, Push, PushRequest, TakeRequest, VoteRequest
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import find_mutant, mutant_names
from tests.unit.system_under_test.dledger.dledger_group import NAMES, Group, play
from tests.unit.system_under_test.dledger.dledger_stage import SECOND, Stage, entry, log, member, state_of, won, written

NAMES_OF_MUTANTS = mutant_names(mutants)


def push(kind: Push, *indices: int, term: int = 1, committed: int = NOTHING) -> PushRequest:
    entries = tuple(entry(index, 1) for index in indices)
    return PushRequest("L", term, kind, entries, committed, is_batch=len(entries) > 1)


def compared(parts: CoreParts, follower: str, index: int) -> Stage:
    stage = Stage("0-9:1", follower, parts=parts)
    stage.obeys(push(Push.COMPARE, index))
    return stage


def after_a_batch(parts: CoreParts) -> object:
    stage = compared(parts, "0-2:1", 2)
    code = stage.obeys(push(Push.APPEND, 3, 4, 5)).code
    return code, stage.follower.log.end


def committed_beyond(parts: CoreParts) -> object:
    stage = compared(parts, "0-3:1", 3)
    stage.obeys(push(Push.COMMIT, committed=9))
    return stage.follower.committed


def after_truncate(parts: CoreParts) -> object:
    stage = compared(parts, "0-8:1", 5)
    stage.follower.keep(2, None)
    code = stage.obeys(push(Push.TRUNCATE, 5, term=2)).code
    return code, stage.follower.log.end


def after_late_truncate_of_the_same_term(parts: CoreParts) -> object:
    stage = compared(parts, "0-8:1", 8)
    stage.obeys(push(Push.TRUNCATE, 5))
    return stage.follower.log.end


def after_truncate_of_an_old_leader(parts: CoreParts) -> object:
    own = member("0-8:1", term=2, parts=parts)
    own.step(Receive(1, HeartbeatRequest("b", 2)), SECOND)
    own.step(Receive(2, PushRequest("c", 1, Push.TRUNCATE, (entry(5, 1),))), SECOND)
    return own.state.log.end


def committed_by(marks: dict[str, int], term: int) -> Callable[[CoreParts], object]:
    def story(parts: CoreParts) -> object:
        state = state_of("a", "0-3:1", term, ("a", "b", "c"))
        state.effects = Effects(0)
        quorum = parts.quorum(state)
        quorum.begin()
        for name, mark in marks.items():
            quorum.has(name, mark)
        return state.committed

    return story


def answered_when_the_term_changes(parts: CoreParts) -> object:
    own = member("0-4:1", parts=parts)
    won(own)
    own.step(Append(7, (b"x",)), SECOND)
    effects = own.step(Receive(9, HeartbeatRequest("b", own.state.term + 1)), SECOND)
    return [one.code for one in effects.appended]


def truncates_where_nothing_is_shared(parts: CoreParts) -> object:
    stage = Stage("0-2:3", "0-1:2", parts=parts)
    for _ in range(20):
        for sent in stage.sends():
            assert isinstance(sent.request, PushRequest)
            stage.dispatcher.take(sent.number, stage.obeys(sent.request))
    return written(stage.follower.log)  # type: ignore[arg-type]


def vouches_for_a_comparison(parts: CoreParts) -> object:
    return compared(parts, "0-3:1", 3).handler.vouches(push(Push.COMPARE, 3))


def asks_with_the_term_of_its_last_entry(parts: CoreParts) -> object:
    return member("0-4:1", term=3, parts=parts).election.last_term()


def votes_for_a_shorter_log(parts: CoreParts) -> object:
    own = member("0-4:1", term=3, parts=parts)
    own.state.hard_state = HardState(3, None)
    return len(own.step(Receive(1, VoteRequest("c", 3, 1, 2)), SECOND).granted)


def hands_over_to_one_that_lags(parts: CoreParts) -> object:
    own = member("0-1999:1", parts=parts, preferred=("c",))
    won(own)
    effects = own.step(Tick(SECOND), own.state.now_ns + SECOND)
    return sum(isinstance(sent.request, TakeRequest) for sent in effects.requests)


def compares_with_an_emptied_peer(parts: CoreParts) -> object:
    stage = Stage("0-5:1", "0-5:1", committed=5, parts=parts)
    stage.run()
    stage.follower.log, stage.handler.verified = log(""), NOTHING
    stage.dispatcher.connected()
    for _ in range(20):
        stage.leader.now_ns += SECOND
        for sent in stage.sends():
            assert isinstance(sent.request, PushRequest)
            stage.dispatcher.take(sent.number, stage.obeys(sent.request))
    return written(stage.follower.log)


IN_THE_CORE: dict[str, tuple[Callable[[CoreParts], object], object, object]] = {
    "batch-ack-all": (after_a_batch, (Code.SUCCESS, 5), (Code.SUCCESS, 4)),
    "commit-beyond-end": (committed_beyond, 3, 9),
    "commit-old-term": (committed_by({"a": 3, "b": 3}, term=2), NOTHING, 3),
    "compare-starts-over": (truncates_where_nothing_is_shared, "0-2:3", "0-1:2"),
    "compare-unsynced": (vouches_for_a_comparison, True, False),
    "end-term-is-current": (asks_with_the_term_of_its_last_entry, 1, 3),
    "late-truncate": (after_truncate_of_an_old_leader, 8, 5),
    "late-truncate-same-term": (after_late_truncate_of_the_same_term, 8, 5),
    "minority-commit": (committed_by({"a": 3}, term=1), NOTHING, 3),
    "pending-by-index": (answered_when_the_term_changes, [Code.TERM_CHANGED], []),
    "transfer-without-lag-check": (hands_over_to_one_that_lags, 0, 1),
    "truncate-inclusive": (after_truncate, (Code.SUCCESS, 5), (Code.SUCCESS, 4)),
    "vote-ignores-log": (votes_for_a_shorter_log, 0, 1),
    "wiped-not-pushed": (compares_with_an_emptied_peer, "0-5:1", "nothing"),
}
"""What comes of it in a healthy member, and with the bug."""


@pytest.mark.parametrize("name", IN_THE_CORE)
def test_the_bug_does_the_wrong_thing_and_the_healthy_part_the_right_one(name: str) -> None:
    story, healthy, broken = IN_THE_CORE[name]
    assert story(CoreParts()) == healthy
    assert story(find_mutant(mutants, name).parts_of(MemberParts).core) == broken


async def shows_what_nobody_has(group: Group) -> bool:
    leader = await group.leader()
    await group.isolate(leader)
    await group.append(leader, b"alone")
    return b"alone" in await group.pulled(leader)


async def acknowledges_before_a_disk_has_it(group: Group) -> bool:
    """Each fsync takes at least a quarter of a second."""
    leader = await group.leader()
    await group.sleep(5)
    began_ns = group.environment.timeline.now_ns()
    assert (await group.append(leader, b"soon")).code is Code.SUCCESS
    return group.environment.timeline.now_ns() - began_ns < 200_000_000


IN_THE_DRIVER: dict[str, Callable[[Group], Any]] = {
    "ack-not-durable": acknowledges_before_a_disk_has_it,
    "uncommitted-get": shows_what_nobody_has,
}


@pytest.mark.parametrize("name", IN_THE_DRIVER)
def test_the_bug_of_a_driver_shows_in_its_group_and_not_in_a_healthy_one(name: str) -> None:
    seen: list[bool] = []

    async def story(group: Group) -> None:
        seen.append(await IN_THE_DRIVER[name](group))

    play(story, fsync_ms=500.0, ackDurable=True)
    play(story, fsync_ms=500.0, ackDurable=True, mutant=name)
    assert seen == [False, True]


def test_no_bug_is_left_out() -> None:
    assert {*IN_THE_CORE, *IN_THE_DRIVER} == set(NAMES_OF_MUTANTS)


@pytest.mark.parametrize("name", NAMES_OF_MUTANTS)
def test_its_group_serves_while_nothing_is_wrong(name: str) -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        assert (await group.append(leader, b"a")).code is Code.SUCCESS
        assert (await group.append(leader, b"b")).code is Code.SUCCESS
        await group.sleep(3)
        assert [await group.pulled(node) for node in NAMES] == [[b"a", b"b"]] * len(NAMES)

    play(story, mutant=name)
