"""POP in order: of a queue nothing more is given out before all that was given out is settled or its time is over."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.pop_client import PopClient, PoppedMessage
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play

OK = "SUCCESS"
INVISIBLE_MS = 5_000
CLEANED_ALWAYS = {"cleanResourceInterval": 500, "deleteWhen": ";".join(f"{hour:02}" for hour in range(24))}


class Consumer:
    """One of a group that pops in order."""

    def __init__(self, cluster: Cluster, attempt_id: str = "") -> None:
        client = cluster.client()
        self._pops = PopClient(client._host, client, "readers")
        self._attempt_id = attempt_id
        self.held: dict[str, PoppedMessage] = {}

    async def pop(self, count: int = 2, poll_ms: int = 0) -> list[str]:
        popped = await self._pops.pop(
            TOPIC, INVISIBLE_MS, max_count=count, poll_ms=poll_ms, is_ordered=True, attempt_id=self._attempt_id
        )
        self.held |= {message.body.decode(): message for message in popped.messages}
        return [
            message.body.decode() + (f"×{message.reconsume_times}" if message.reconsume_times else "")
            for message in popped.messages
        ]

    async def ack(self, *letters: str) -> list[str]:
        return [await self._ack(letter) for letter in letters]

    async def _ack(self, letter: str) -> str:
        try:
            await self._pops.ack(self.held[letter])
        except ClientError as error:
            return error.code
        return OK

    async def keep(self, letter: str, invisible_ms: int) -> None:
        self.held[letter] = await self._pops.change_invisible_time(self.held[letter], invisible_ms)


async def sent(cluster: Cluster, letters: Sequence[str]) -> None:
    assert await cluster.send("b1", *letters) == [OK] * len(letters)


def test_a_queue_waits_for_what_was_given_out_and_goes_on_in_order():
    async def story(cluster: Cluster) -> None:
        first, second = Consumer(cluster), Consumer(cluster)
        await sent(cluster, "abcde")
        assert await first.pop() == ["a", "b"]
        assert await second.pop() == []
        assert await first.ack("b") == [OK]
        assert await second.pop() == []
        assert await cluster.committed("b1", "readers") in (None, 0)
        assert await first.ack("a") == [OK]
        assert await cluster.committed("b1", "readers") == 2
        assert await second.pop() == ["c", "d"]
        assert await second.ack("c") == [OK]
        await cluster.sleep(5)
        # What is left comes again in its place, and what was acknowledged does not.
        assert await first.pop() == ["d×1", "e"]
        assert await second.ack("d") == ["not-held"]
        assert await first.ack("d", "e") == [OK, OK]
        assert await cluster.committed("b1", "readers") == 5
        await cluster.sleep(20)
        assert await first.pop() == []

    play(story)


def test_what_was_acknowledged_in_the_midst_does_not_come_again_with_the_rest():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        await sent(cluster, "abcde")
        assert await consumer.pop(count=4) == ["a", "b", "c", "d"]
        assert await consumer.ack("b", "c") == [OK, OK]
        await cluster.sleep(5)
        assert await consumer.pop(count=1) == ["a×1", "d×1"]
        await cluster.sleep(5)
        assert await consumer.pop(count=5) == ["a×2", "d×2", "e"]
        assert await consumer.ack("a", "d", "e") == [OK] * 3
        assert await consumer.pop() == []

    play(story)


def test_what_was_acknowledged_behind_all_that_is_left_does_not_come_again_when_that_comes_alone():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        await sent(cluster, "abcd")
        assert await consumer.pop(count=4) == ["a", "b", "c", "d"]
        assert await consumer.ack("a", "c", "d") == [OK] * 3
        await cluster.sleep(5)
        assert await consumer.pop(count=1) == ["b×1"]
        assert await consumer.ack("b") == [OK]
        assert await consumer.pop() == []
        assert await cluster.committed("b1", "readers") == 4
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await Consumer(cluster).pop() == []

    play(story)


def test_a_new_master_keeps_a_longer_time_for_as_long():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        await sent(cluster, "ab")
        assert await consumer.pop(count=1) == ["a"]
        await consumer.keep("a", 60_000)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.sleep(2 * INVISIBLE_MS / 1000)
        assert await Consumer(cluster).pop() == []
        await cluster.sleep(60)
        assert await Consumer(cluster).pop() == ["a×1", "b"]

    play(story)


def test_what_expired_while_it_was_given_out_keeps_nobody_waiting():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        await sent(cluster, "a")
        assert await consumer.pop(count=1) == ["a"]
        await sent(cluster, ["x" * 300] * 20)
        await cluster.until(begins_later(cluster), 60)
        assert await consumer.pop(count=1) == ["x" * 300]
        assert await consumer.ack("x" * 300) == [OK]

    play(story, brokers=1, mappedFileSizeCommitLog=2048, fileReservedTimeMillis=3_000, **CLEANED_ALWAYS)


def begins_later(cluster: Cluster) -> Callable[[], Coroutine[Any, Any, bool]]:
    async def has_expired() -> bool:
        await sent(cluster, ["x" * 300] * 2)
        return (await cluster.queue_range("b1"))[0] > 0

    return has_expired


def test_a_new_master_keeps_the_order_and_what_is_given_out():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        await sent(cluster, "abcd")
        assert await consumer.pop(count=3) == ["a", "b", "c"]
        assert await consumer.ack("a") == [OK]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        other = Consumer(cluster)
        assert await other.pop() == []
        other.held = consumer.held
        assert await other.ack("c") == [OK]
        await cluster.sleep(5)
        assert await other.pop() == ["b×1", "d"]
        assert await other.ack("b", "d") == [OK, OK]
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        await cluster.kill("b2")
        await cluster.until_master("b1")
        last = Consumer(cluster)
        assert await last.pop() == []
        assert await cluster.committed("b1", "readers") == 4

    play(story)


def test_a_kept_message_keeps_the_queue_and_its_handle_still_counts():
    async def story(cluster: Cluster) -> None:
        consumer, other = Consumer(cluster), Consumer(cluster)
        await sent(cluster, "abc")
        assert await consumer.pop() == ["a", "b"]
        assert await consumer.ack("a") == [OK]
        await cluster.sleep(4)
        await consumer.keep("b", 10_000)
        await cluster.sleep(5)
        assert await other.pop() == []
        assert await consumer.ack("b") == [OK]
        assert await other.pop() == ["c"]

    play(story)


def test_who_waits_gets_the_queue_when_it_is_free_acknowledged_or_over():
    async def story(cluster: Cluster) -> None:
        consumer, other = Consumer(cluster), Consumer(cluster)
        await sent(cluster, "abc")
        assert await consumer.pop(count=1) == ["a"]
        begun = cluster.now_s
        assert await other.pop(count=1, poll_ms=8_000) == ["a×1"]
        assert 4.9 < cluster.now_s - begun < 5.2
        assert await other.ack("a") == [OK]
        assert await consumer.pop(count=1) == ["b"]

    play(story)


def test_a_consumer_that_asks_again_in_the_same_attempt_gets_the_same_at_once():
    async def story(cluster: Cluster) -> None:
        consumer, other = Consumer(cluster, "attempt 1"), Consumer(cluster, "attempt 2")
        await sent(cluster, "abc")
        assert await consumer.pop() == ["a", "b"]
        assert await other.pop() == []
        assert await consumer.pop() == ["a", "b"]
        assert await consumer.ack("a", "b") == [OK, OK]
        assert await other.pop() == ["c"]

    play(story)
