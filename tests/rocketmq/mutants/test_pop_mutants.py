"""Planted bugs of POP, each under the shortest story that shows it; the healthy broker lives through the same."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.rocketmq.scenarios.broker_cluster import Cluster, play
from tests.rocketmq.scenarios.popping_consumer import OK, Consumer

Story = Callable[[Cluster], Coroutine[Any, Any, None]]


async def what_was_given_out_comes_again_though_the_master_stops_at_once(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a", "b") == [OK] * 2
    assert await consumer.pop(count=1) == ["a"]
    # It writes consumers' offsets when it stops.
    await cluster.stop_cleanly("b1")
    await cluster.boot("b1")
    await cluster.until_master("b1", 60)
    await cluster.sleep(6)
    assert sorted(await Consumer(cluster).pop()) == ["a×1", "b"]


async def what_is_left_of_some_comes_again(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
    assert await consumer.pop() == ["a", "b", "c"]
    assert await consumer.ack("b") == OK
    await cluster.sleep(6)
    assert await consumer.pop() == ["a×1", "c×1"]


async def an_acknowledged_message_cannot_be_kept(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a") == [OK]
    assert await consumer.pop() == ["a"]
    assert await consumer.ack("a") == OK
    assert await consumer.keep("a", 1_000) == "not-held"
    await cluster.sleep(10)
    assert await consumer.pop() == []


async def a_kept_message_comes_once_when_its_new_time_is_over(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a") == [OK]
    assert await consumer.pop() == ["a"]
    assert await consumer.keep("a", 20_000) == OK
    await cluster.sleep(10)
    assert await consumer.pop() == []


async def a_slave_that_takes_over_knows_what_was_acknowledged(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a") == [OK]
    assert await consumer.pop() == ["a"]
    await cluster.cut(("b1", "b2"))
    if await consumer.ack("a") == OK:
        await cluster.kill("b1")
        await cluster.until_master("b2", 60)
        await cluster.sleep(10)
        assert await Consumer(cluster).pop() == []


async def what_was_given_out_by_the_last_master_comes_again(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a") == [OK]
    assert await consumer.pop() == ["a"]
    await cluster.sleep(1)
    await cluster.kill("b1")
    await cluster.until_master("b2")
    await cluster.sleep(6)
    assert await Consumer(cluster).pop() == ["a×1"]


async def what_is_due_while_too_few_are_in_sync_comes_again_later(cluster: Cluster) -> None:
    consumer = Consumer(cluster)
    assert await cluster.send("b1", "a") == [OK]
    assert await consumer.pop() == ["a"]
    await cluster.sleep(1)
    await cluster.kill("b1")
    await cluster.sleep(20)
    assert await cluster.master() == "b2"
    await cluster.boot("b1")
    await cluster.until_members(1, 2)
    await cluster.sleep(6)
    assert await Consumer(cluster).pop() == ["a×1"]


async def in_order_a_queue_waits_and_what_is_left_comes_again_first(cluster: Cluster) -> None:
    first, second = Consumer(cluster, is_ordered=True), Consumer(cluster, is_ordered=True)
    assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
    assert await first.pop(count=2) == ["a", "b"]
    assert await first.ack("b") == OK
    assert await second.pop(count=2) == []
    await cluster.sleep(6)
    assert await second.pop(count=2) == ["a×1", "c"]


async def in_order_a_new_master_keeps_the_queue_closed(cluster: Cluster) -> None:
    assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
    assert await Consumer(cluster, is_ordered=True).pop(count=2) == ["a", "b"]
    await cluster.sleep(1)
    await cluster.kill("b1")
    await cluster.until_master("b2")
    assert await Consumer(cluster, is_ordered=True).pop(count=2) == []


STORIES: dict[str, tuple[Story, dict[str, Any]]] = {
    "checkpoint-after-reply": (
        what_was_given_out_comes_again_though_the_master_stops_at_once,
        {"brokers": 1},
    ),
    "revive-drop": (what_is_left_of_some_comes_again, {}),
    "revive-next": (what_is_left_of_some_comes_again, {}),
    "pop-count-kept": (what_is_left_of_some_comes_again, {}),
    "renew-after-ack": (an_acknowledged_message_cannot_be_kept, {}),
    "renewal-keeps-old": (a_kept_message_comes_once_when_its_new_time_is_over, {}),
    "ack-before-replicated": (a_slave_that_takes_over_knows_what_was_acknowledged, {}),
    "orderly-not-blocked": (in_order_a_queue_waits_and_what_is_left_comes_again_first, {}),
    "left-over-skipped": (in_order_a_queue_waits_and_what_is_left_comes_again_first, {}),
    "order-info-lost": (in_order_a_new_master_keeps_the_queue_closed, {}),
    "revival-passes-over": (what_is_due_while_too_few_are_in_sync_comes_again_later, {"minInSyncReplicas": 2}),
    "revive-log-not-read": (what_was_given_out_by_the_last_master_comes_again, {"slaveSynchronizePeriod": 500}),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_healthy_broker_lives_through_the_story_of_pop(name):
    story, settings = STORIES[name]
    play(story, **settings)


@pytest.mark.parametrize("name", STORIES)
def test_the_planted_bug_of_pop_shows(name):
    story, settings = STORIES[name]
    with pytest.raises(AssertionError):
        play(story, mutant=name, **settings)
