"""Planted bugs of what waits at a broker, each under the shortest story that shows it; the healthy broker lives through
the same: delayed messages, timers, transactions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from system_under_test.rocketmq.transaction_protocol import Decision
from tests.rocketmq.scenarios.broker_cluster import Cluster, play
from tests.rocketmq.scenarios.test_delayed_messages import LEVELS, send_later
from tests.rocketmq.scenarios.test_timed_messages import BEGIN_MS, SMALL, WHEEL, send_timed
from tests.rocketmq.scenarios.test_transactions import TIMES, half, producer_of

OK = "SUCCESS"
Story = Callable[[Cluster], Coroutine[Any, Any, None]]


async def what_is_due_while_too_few_are_in_sync_survives_a_restart(cluster: Cluster) -> None:
    assert await send_later(cluster, "b1", 1, "a", "b") == [OK, OK]
    await cluster.kill("b2")
    await cluster.until_members(1)
    await cluster.sleep(6)
    await cluster.kill("b1")
    await cluster.boot("b1", "b2")
    await cluster.until_members(1, 2)
    await cluster.sleep(8)
    assert sorted(set(await cluster.read((await cluster.master()) or ""))) == ["a", "b"]


async def what_is_due_while_too_few_are_in_sync_comes_out_later(cluster: Cluster) -> None:
    assert await send_later(cluster, "b1", 1, "a", "b") == [OK, OK]
    await cluster.kill("b2")
    await cluster.until_members(1)
    await cluster.sleep(3)
    await cluster.boot("b2")
    await cluster.until_members(1, 2)
    await cluster.sleep(3)
    assert sorted(await cluster.read("b1")) == ["a", "b"]


async def a_new_master_delivers_nothing_of_long_ago(cluster: Cluster) -> None:
    assert await send_later(cluster, "b1", 1, "a") == [OK]
    await cluster.sleep(10)
    await cluster.kill("b1")
    await cluster.until_master("b2")
    await cluster.sleep(3)
    assert await cluster.read("b2") == ["a"]


async def a_timer_beyond_the_window_is_not_early(cluster: Cluster) -> None:
    assert await send_timed(cluster, "b1", "late", TIMER_DELAY_SEC=7) == OK
    await cluster.sleep(6.5)
    assert await cluster.read("b1") == []


async def a_new_master_knows_what_was_taken_back(cluster: Cluster) -> None:
    at_ms = BEGIN_MS + round(cluster.now_s * 1000) + 9_000
    assert await send_timed(cluster, "b1", "unwanted", UNIQ_KEY="id", TIMER_DELIVER_MS=at_ms) == OK
    assert await send_timed(cluster, "b1", "", TIMER_DEL_UNIQKEY="id", TIMER_DELIVER_MS=at_ms) == OK
    await cluster.kill("b1")
    await cluster.until_master("b2")
    await cluster.sleep(10)
    assert await cluster.read("b2") == []


async def what_stands_where_something_was_cut_off_comes_out(cluster: Cluster) -> None:
    """b2 is elected though it lacks what b1 has delivered; b1 is cut back to it, and is master again at once."""
    await cluster.kill("b2")
    await cluster.until_members(1)
    for letter in ("a", "b", "c"):
        assert await send_timed(cluster, "b1", letter, TIMER_DELAY_MS=100) == OK
    await cluster.sleep(3)
    assert await cluster.read("b1") == ["a", "b", "c"]
    await cluster.kill("b1")
    await cluster.boot("b2")
    await cluster.until_master("b2")
    assert await send_timed(cluster, "b2", "d", TIMER_DELAY_MS=9_000) == OK
    await cluster.boot("b1")
    await cluster.until_members(1, 2)
    await cluster.kill("b2")
    await cluster.until_master("b1")
    await cluster.sleep(12)
    assert await cluster.read("b1") == ["d"]


async def a_half_is_not_seen(cluster: Cluster) -> None:
    producer = producer_of(cluster, {})
    await half(producer, "paid")
    assert await cluster.read("b1") == []
    producer.close()


async def who_is_asked_may_roll_back(cluster: Cluster) -> None:
    producer = producer_of(cluster, {"refused": Decision.ROLLBACK})
    await half(producer, "refused")
    await cluster.sleep(8)
    assert await cluster.read("b1") == []
    producer.close()


async def a_new_master_asks_about_what_is_open(cluster: Cluster) -> None:
    producer = producer_of(cluster, {"paid": Decision.COMMIT})
    await half(producer, "paid")
    await cluster.kill("b1")
    await cluster.until_master("b2")
    await cluster.sleep(10)
    assert await cluster.read("b2") == ["paid"]
    producer.close()


STORIES: dict[str, tuple[Story, dict[str, Any]]] = {
    "progress-first": (what_is_due_while_too_few_are_in_sync_survives_a_restart, {**LEVELS, "minInSyncReplicas": 2}),
    "retry-cap": (what_is_due_while_too_few_are_in_sync_comes_out_later, {**LEVELS, "minInSyncReplicas": 2}),
    "async-skip": (
        what_is_due_while_too_few_are_in_sync_comes_out_later,
        {**LEVELS, "minInSyncReplicas": 2, "scheduleDeliveryMode": "ASYNC"},
    ),
    "slave-progress-old": (a_new_master_delivers_nothing_of_long_ago, LEVELS),
    "taken-back-forgotten": (a_new_master_knows_what_was_taken_back, WHEEL),
    "timer-progress-kept": (
        what_stands_where_something_was_cut_off_comes_out,
        {**WHEEL, "slaveSynchronizePeriod": 60_000, "unclean": True},
    ),
    "wheel-wrap": (a_timer_beyond_the_window_is_not_early, SMALL),
    "half-visible": (a_half_is_not_seen, TIMES),
    "check-ignores-rollback": (who_is_asked_may_roll_back, TIMES),
    "old-halves-unasked": (a_new_master_asks_about_what_is_open, TIMES),
}
"""`end-before-message` takes a kill between two writes: storms find it."""


@pytest.mark.parametrize("name", STORIES)
def test_the_healthy_broker_lives_through_the_story(name):
    story, settings = STORIES[name]
    play(story, **settings)


@pytest.mark.parametrize("name", STORIES)
def test_the_planted_bug_shows(name):
    story, settings = STORIES[name]
    with pytest.raises(AssertionError):
        play(story, mutant=name, **settings)
