"""What waits in the log while its first files expire: delayed messages, open transactions, popped messages.

A file is kept for 20 s once it is full; brokers look each second. What has expired is passed over, and all goes on at
what is left, at the same master and at the next one.
"""

from __future__ import annotations

from system_under_test.rocketmq.message_protocol import SendRequest
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.rocketmq.transaction_protocol import Decision
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.popping_consumer import Consumer
from tests.rocketmq.scenarios.test_delayed_messages import send_later
from tests.rocketmq.scenarios.test_expired_files import EXPIRING, KEPT_S, OK, send
from tests.rocketmq.scenarios.test_transactions import half, producer_of

EXPIRING_SOON = {**EXPIRING, "mappedFileSizeCommitLog": 4096, "slaveSynchronizePeriod": 1_000}
FILLERS = [f"filler {number} {'.' * 100}" for number in range(40)]


async def all_so_far_expires(cluster: Cluster, node: str) -> None:
    """Fill the files in which all so far stands, and wait until they are gone at each replica."""
    end = (await cluster.log(node)).max_offset
    await send(cluster, node, FILLERS)

    async def is_gone() -> bool:
        deleted = [cluster.reported(broker, "deleted") for broker in cluster.brokers]
        return all(events and events[-1]["to"] >= end for events in deleted)

    await cluster.until(is_gone, 2 * KEPT_S)


async def left(cluster: Cluster, node: str) -> list[str]:
    """What the topic still shows, without what only fills it."""
    start, _ = await cluster.queue_range(node)
    return [letter for letter in await cluster.read(node, start=start) if letter not in FILLERS]


async def until_left(cluster: Cluster, node: str, letters: list[str]) -> None:
    async def are_there() -> bool:
        return await left(cluster, node) == letters

    await cluster.until(are_there, 10)


async def fail_over(cluster: Cluster) -> None:
    await cluster.kill("b1")
    await cluster.until_master("b2")


def test_a_new_master_passes_over_delayed_messages_that_have_expired_and_delivers_those_behind_them():
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 2, "never") == [OK]
        await all_so_far_expires(cluster, "b1")
        assert await send_later(cluster, "b1", 2, "in time") == [OK]
        await fail_over(cluster)
        assert await send_later(cluster, "b2", 1, "soon") == [OK]
        await until_left(cluster, "b2", ["soon"])
        (event,) = cluster.reported("b2", "undelivered")
        assert (event["level"], event["before"]) == (2, 1)
        await cluster.sleep(60)
        assert await left(cluster, "b2") == ["soon", "in time"]

    play(story, messageDelayLevel="1s 60s", **EXPIRING_SOON)


def test_timers_pass_over_what_has_expired():
    async def story(cluster: Cluster) -> None:
        assert await send_timed(cluster, "b1", 60, "never") == [OK]
        await all_so_far_expires(cluster, "b1")
        await fail_over(cluster)
        assert await send_timed(cluster, "b2", 2, "soon") == [OK]
        await until_left(cluster, "b2", ["soon"])
        await cluster.sleep(90)
        assert await left(cluster, "b2") == ["soon"]

    play(story, **EXPIRING_SOON)


async def send_timed(cluster: Cluster, node: str, delay_s: int, letter: str) -> list[str]:
    request = SendRequest(
        topic=TOPIC,
        queue_id=0,
        body=letter.encode(),
        born_timestamp_ms=0,
        properties=f"TIMER_DELAY_SEC\x01{delay_s}\x02",
    )
    return [await cluster.ask(node, request.encode())]


def test_a_transaction_whose_half_has_expired_is_open_no_more_and_others_end_as_ever():
    async def story(cluster: Cluster) -> None:
        decisions: dict[str, Decision] = {}
        producer = producer_of(cluster, decisions)
        await half(producer, "never")
        await all_so_far_expires(cluster, "b1")
        await cluster.sleep(5)
        assert [event["offset"] for event in cluster.reported("b1", "transaction_expired")] == [0]
        await producer.end(await half(producer, "paid"), Decision.COMMIT)
        await until_left(cluster, "b1", ["paid"])
        decisions["paid later"] = Decision.COMMIT
        await half(producer, "paid later")
        await fail_over(cluster)
        # The next master asks.
        await cluster.sleep(10)
        await until_left(cluster, "b2", ["paid", "paid later"])
        producer.close()

    play(story, transactionTimeOut=2_000, transactionCheckInterval=3_000, flushDiskType="SYNC_FLUSH", **EXPIRING_SOON)


def test_popped_messages_that_have_expired_are_settled_and_a_new_master_goes_on_at_what_is_left():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b") == [OK] * 2
        assert await consumer.pop(invisible_ms=60_000) == ["a", "b"]
        assert await consumer.ack("a") == OK
        await all_so_far_expires(cluster, "b1")
        await fail_over(cluster)
        popped = await consumer.pop()
        assert popped
        assert popped == FILLERS[-len(popped) :]
        assert [await consumer.ack(letter) for letter in popped] == [OK] * len(popped)
        assert await cluster.send("b2", "c") == [OK]
        assert await consumer.pop() == ["c"]
        assert await consumer.ack("c") == OK
        await cluster.sleep(90)
        assert await consumer.pop() == []

    play(story, **EXPIRING_SOON)


def test_a_master_settles_what_it_has_given_out_and_deleted_since():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a") == [OK]
        assert await consumer.pop(invisible_ms=60_000) == ["a"]
        await all_so_far_expires(cluster, "b1")
        await cluster.sleep(60)
        (event,) = cluster.reported("b1", "popped_messages_deleted")
        assert event["offsets"] == [0]

    play(story, **EXPIRING_SOON)


def test_who_pops_passes_over_a_queue_of_which_nothing_is_left():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
        assert await consumer.pop(count=1) == ["a"]
        assert await consumer.ack("a") == OK
        assert await cluster.make_topic("b1", TopicConfig.of("other", 1)) == OK
        assert await cluster.send("b1", *FILLERS, topic="other") == [OK] * len(FILLERS)

        async def is_empty() -> bool:
            return await cluster.queue_range("b1") == (3, 3)

        await cluster.until(is_empty, 2 * KEPT_S)
        assert await consumer.pop() == []
        assert await cluster.committed("b1", "readers") == 3
        assert await cluster.send("b1", "d") == [OK]
        assert await consumer.pop() == ["d"]

    play(story, **EXPIRING_SOON)
