"""Planted bugs in how brokers serve groups of consumers, each under the shortest story that shows it; healthy ones live
through the same."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from system_under_test.rocketmq.client.consumer.config import Mode
from system_under_test.rocketmq.consumer_protocol import dead_letter_topic
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.group_member import Member, send, set_retry_queues, until_got

Story = Callable[[Cluster], Coroutine[Any, Any, None]]
PATIENT: dict[str, Any] = {"max_reconsume_times": 2, "rebalance_s": 1.0}


async def a_queue_is_one_members_while_its_listener_is_at_work(cluster: Cluster) -> None:
    first = Member(cluster, "m2", mode=Mode.ORDERLY)
    await cluster.until(lambda: first.has(0), 5)
    first.takes_s = 30
    await send(cluster, "b1", 0, "a")
    await until_got(cluster, ["a"], first)
    second = Member(cluster, "m1", mode=Mode.ORDERLY)
    await cluster.sleep(20)
    assert second.got == []


async def what_fails_is_a_dead_letter_after_as_many_tries_as_there_may_be(cluster: Cluster) -> None:
    member = Member(cluster, "m1", **PATIENT)
    member.fails = lambda message: True
    await send(cluster, "b1", 0, "bad")
    # It comes again after 10 s, and then after 30 s.
    await cluster.sleep(60)
    assert member.got == ["bad", "bad+1", "bad+2"]
    assert await cluster.read("b1", dead_letter_topic("readers")) == ["bad"]


async def the_queues_of_a_member_that_died_are_the_others(cluster: Cluster) -> None:
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    await cluster.until(lambda: first.has(0), 5)
    first.consumer.close()
    await cluster.until(lambda: second.has(0, 1), 60)


async def what_a_member_had_when_it_died_comes_again(cluster: Cluster) -> None:
    first = Member(cluster, "m1")
    await cluster.until(lambda: first.has(0), 5)
    first.takes_s = 60
    await send(cluster, "b1", 0, "a")
    await until_got(cluster, ["a"], first)
    await cluster.sleep(0.5)
    first.consumer.close()
    second = Member(cluster, "m2")
    await until_got(cluster, ["a"], second)


async def what_was_taken_back_comes_again_after_its_master_died(cluster: Cluster) -> None:
    """The master loses its slaves before the member sends back."""
    member = Member(cluster, "m1", **PATIENT)
    await cluster.until(lambda: member.has(0), 5)
    await send(cluster, "b1", 0, "bad")
    await until_got(cluster, ["bad"], member)
    member.fails = lambda message: True
    member.takes_s = 2
    await send(cluster, "b1", 0, "worse")
    await until_got(cluster, ["bad", "worse"], member)
    await cluster.cut(("b1", "b2"))
    await cluster.sleep(5)
    await cluster.kill("b1")
    await cluster.heal()
    await cluster.until_master("b2")

    async def comes_again() -> bool:
        return member.got.count("worse") + member.got.count("worse+1") > 1

    await cluster.until(comes_again, 60)


async def what_is_sent_back_comes_again_also_from_queues_that_the_group_got_later(cluster: Cluster) -> None:
    member = Member(cluster, "m1", rebalance_s=1.0)
    member.fails = lambda message: message.reconsume_times == 0
    await send(cluster, "b1", 0, "first")
    await until_got(cluster, ["first", "first+1"], member)
    await set_retry_queues(cluster, "b1", 8)
    letters = [f"{number}" for number in range(20)]
    await send(cluster, "b1", 0, *letters)
    await until_got(cluster, ["first", *letters, *(f"{each}+1" for each in ("first", *letters))], member)


TWO_QUEUES = {"topics": {TOPIC: 2}}
STORIES: dict[str, tuple[Story, dict[str, Any]]] = {
    "lock-granted-twice": (a_queue_is_one_members_while_its_listener_is_at_work, {}),
    "retry-count-kept": (what_fails_is_a_dead_letter_after_as_many_tries_as_there_may_be, {}),
    "retry-not-stored": (what_fails_is_a_dead_letter_after_as_many_tries_as_there_may_be, {}),
    "retry-queues-kept": (what_is_sent_back_comes_again_also_from_queues_that_the_group_got_later, {}),
    "dead-letters-dropped": (what_fails_is_a_dead_letter_after_as_many_tries_as_there_may_be, {}),
    "returns-unreplicated": (
        what_was_taken_back_comes_again_after_its_master_died,
        {"brokers": 2},
    ),
    "ghost-members": (the_queues_of_a_member_that_died_are_the_others, TWO_QUEUES),
    "commit-on-pull": (what_a_member_had_when_it_died_comes_again, {}),
    "offset-made-up": (what_a_member_had_when_it_died_comes_again, {}),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_healthy_broker_serves_groups_through_the_story(name):
    story, settings = STORIES[name]
    play(story, **{"brokers": 1, **settings})


@pytest.mark.parametrize("name", STORIES)
def test_the_planted_bug_shows_in_a_group(name):
    story, settings = STORIES[name]
    with pytest.raises(AssertionError):
        play(story, mutant=name, **{"brokers": 1, **settings})
