"""Who is a member, who has which queue alone, and what becomes of what could not be consumed: the pure parts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from system_under_test.rocketmq.broker.consuming.group_members import GroupMembers
from system_under_test.rocketmq.broker.consuming.queue_locks import QueueLocks
from system_under_test.rocketmq.broker.consuming.retries import topic_after_tries, what_becomes_of
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import ConsumerData, MessageQueue, SendBackRequest, Subscription
from system_under_test.storage.message import Message

SECOND = 10**9
A, B = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


@dataclass(eq=False)
class PlayedPeer:
    remote: str = "client:1"
    closed: bool = False

    def write(self, data: bytes) -> None:
        raise AssertionError("nothing is written by who only keeps members")

    def close(self) -> None:
        self.closed = True


def of(group: str, *topics: str, version: int = 0) -> ConsumerData:
    return ConsumerData(
        group=group, subscriptions=tuple(Subscription(topic=topic, version=version) for topic in topics)
    )


def test_a_heartbeat_changes_a_group_only_if_somebody_is_new_or_wants_something_else() -> None:
    members, peer = GroupMembers(), PlayedPeer()
    assert members.heard("x", peer, of("g", "T"), 1)
    assert not members.heard("x", peer, of("g", "T"), 2)
    assert members.heard("y", peer, of("g", "T"), 3)
    assert members.heard("x", peer, of("g", "T", "U"), 4)
    assert not members.heard("x", peer, of("g", "T", "U"), 5)
    assert members.heard("x", peer, of("g", "T", "U", version=1), 6)
    assert members.client_ids("g") == ("x", "y")
    assert members.client_ids("other") == ()


def test_an_old_connection_that_ends_takes_nobody_away_who_has_a_new_one() -> None:
    members, old, new = GroupMembers(), PlayedPeer(), PlayedPeer()
    members.heard("x", old, of("g", "T"), 1)
    assert not members.heard("x", new, of("g", "T"), 2)
    assert members.closed(old) == ()
    assert [group.name for group in members.closed(new)] == ["g"]
    assert members.client_ids("g") == ()


def test_who_is_silent_for_too_long_counts_no_more_and_is_disconnected() -> None:
    members, silent, lively = GroupMembers(), PlayedPeer(), PlayedPeer()
    members.heard("x", silent, of("g", "T"), 1)
    members.heard("y", lively, of("g", "T"), 5)
    assert members.silent_since(1) == ()
    assert [list(group.members) for group in members.silent_since(5)] == [["y"]]
    assert (silent.closed, lively.closed) == (True, False)


def test_who_leaves_is_gone_from_that_group_alone() -> None:
    members, peer = GroupMembers(), PlayedPeer()
    for group in ("g", "h"):
        members.heard("x", peer, of(group, "T"), 1)
    assert [group.name for group in members.left("g", "x")] == ["g"]
    assert members.left("g", "x") == ()
    assert members.client_ids("h") == ("x",)


def test_a_lock_is_one_members_of_each_group_until_it_is_given_back() -> None:
    locks = QueueLocks(60)
    assert locks.try_lock("g", "x", [A, B], 0) == (A, B)
    assert locks.try_lock("g", "y", [A, B], SECOND) == ()
    assert locks.try_lock("h", "y", [A], SECOND) == (A,)
    locks.unlock("g", "y", [A])
    assert locks.try_lock("g", "y", [A], SECOND) == ()
    locks.unlock("g", "x", [A])
    assert locks.try_lock("g", "y", [A, B], SECOND) == (A,)


def test_a_lock_lives_on_as_long_as_it_is_asked_for() -> None:
    locks = QueueLocks(60)
    locks.try_lock("g", "x", [A], 0)
    assert locks.try_lock("g", "x", [A], 50 * SECOND) == (A,)
    assert locks.try_lock("g", "y", [A], 110 * SECOND) == ()
    assert locks.try_lock("g", "y", [A], 110 * SECOND + 1) == (A,)
    assert locks.try_lock("g", "x", [A], 110 * SECOND + 2) == ()


def message(tries: int) -> Message:
    return Message("T", 0, 0, 0, 100, b"", {}, 0, 0, 0, b"", 0, b"", tries, 0)


@pytest.mark.parametrize(
    ("tries", "asked", "most", "expected"),
    [
        (0, 0, None, ("%RETRY%g", 1, 3)),
        (1, 0, None, ("%RETRY%g", 2, 4)),
        (15, 0, None, ("%RETRY%g", 16, 18)),
        (16, 0, None, ("%DLQ%g", 17, 0)),
        (0, 7, None, ("%RETRY%g", 1, 7)),
        (0, -1, None, ("%DLQ%g", 1, 0)),
        (2, 0, 2, ("%DLQ%g", 3, 0)),
        (1, 0, 2, ("%RETRY%g", 2, 4)),
        (0, 0, 0, ("%DLQ%g", 1, 0)),
    ],
)
def test_what_was_sent_back_comes_later_each_time_and_is_a_dead_letter_in_the_end(
    tries: int, asked: int, most: int | None, expected: tuple[str, int, int]
) -> None:
    request = SendBackRequest(offset=0, group="g", delay_level=asked, max_reconsume_times=most)
    becomes = what_becomes_of(message(tries), request, ConsumerGroup(name="g"))
    assert (becomes.topic, becomes.reconsume_times, becomes.delay_level) == expected


def test_what_a_consumer_sends_to_the_retry_topic_itself_may_be_a_dead_letter_too() -> None:
    assert topic_after_tries("%RETRY%g", 3, 3) == "%RETRY%g"
    assert topic_after_tries("%RETRY%g", 4, 3) == "%DLQ%g"
