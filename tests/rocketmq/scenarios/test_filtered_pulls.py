"""Pulls of readers that want only some of a queue's messages: by tags, and by properties."""

from __future__ import annotations

import asyncio

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.consumer_protocol import ConsumerData, Heartbeat, Subscription
from system_under_test.rocketmq.message_batch import BatchedMessage, encode_batch
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_filter import MAX_FILTERED
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play

SHORT = {"a": "p", "b": TOPIC, "e": "0", "f": "0", "g": "0", "h": "0", "m": "true"}
NOT_FOUND, RETRY = "PULL_NOT_FOUND", "PULL_RETRY_IMMEDIATELY"


async def send(cluster: Cluster, *letters: str, node: str = "b1") -> None:
    """`a1` is a message `a1` with the tag `a` and the property `n` = 1."""
    messages = [BatchedMessage(letter.encode(), {"TAGS": letter[0], "n": letter[1:]}) for letter in letters]
    command = RemotingCommand.request(RequestCode.SEND_BATCH_MESSAGE, SHORT, encode_batch(messages))
    assert await cluster.ask(node, command) == "SUCCESS"


async def pull(
    cluster: Cluster, start: int, tags: str = "*", *, sql: str | None = None, count: int = 100, wait_ms: int = 0
) -> tuple[str, str, int]:
    """The code, the messages, and where to read on."""
    request = PullRequest(
        topic=TOPIC,
        queue_id=0,
        queue_offset=start,
        max_count=count,
        consumer_group="readers",
        suspend_timeout_ms=wait_ms,
        subscription=tags if sql is None else sql,
        expression_type="TAG" if sql is None else "SQL92",
    )
    answer = await cluster.answer("b1:10911", request.encode())
    if answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED:
        return "SUBSCRIPTION_PARSE_FAILED", answer.remark or "", start
    found, data, at = [], PullAnswer.decode(answer).data, 0
    while at < len(data):
        message = decode_message(data, at)
        found.append(message.body.decode())
        at += message.size
    return ResponseCode(answer.code).name, " ".join(found), PullAnswer.decode(answer).next_offset


def test_a_reader_gets_what_it_wants_and_hears_how_far_there_is_nothing_else():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "a1", "b2", "a3", "c4", "c5")
        assert await pull(cluster, 0) == ("SUCCESS", "a1 b2 a3 c4 c5", 5)
        assert await pull(cluster, 0, "a") == ("SUCCESS", "a1 a3", 5)
        assert await pull(cluster, 0, "a", count=1) == ("SUCCESS", "a1", 1)
        assert await pull(cluster, 1, "a", count=1) == ("SUCCESS", "a3", 3)
        assert await pull(cluster, 3, "a") == (RETRY, "", 5)
        assert await pull(cluster, 5, "a") == (NOT_FOUND, "", 5)
        assert await pull(cluster, 0, " a||  b ") == ("SUCCESS", "a1 b2 a3", 5)
        assert await pull(cluster, 0, sql="n BETWEEN 2 AND 4 AND TAGS <> 'b'") == ("SUCCESS", "a3 c4", 5)
        assert await pull(cluster, 0, sql="missing = 1") == (RETRY, "", 5)
        # Java's hash of AaBB is that of BBAa: the code alone does not tell them apart.
        for tag in ("AaBB", "BBAa"):
            message = encode_batch([BatchedMessage(tag.encode(), {"TAGS": tag})])
            await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_BATCH_MESSAGE, SHORT, message))
        assert await pull(cluster, 0, "BBAa") == ("SUCCESS", "BBAa", 7)

    play(story, brokers=1)


def test_a_subscription_that_is_none_is_refused_with_what_is_wrong():
    async def story(cluster: Cluster) -> None:
        code, remark, _ = await pull(cluster, 0, sql="n > 'x'")
        assert code == "SUBSCRIPTION_PARSE_FAILED" and "character 5: expected a number" in remark
        assert (await pull(cluster, 0, "||"))[0] == "SUBSCRIPTION_PARSE_FAILED"

    play(story, brokers=1)


def test_filters_by_properties_may_be_switched_off():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "a1", "b2")
        request = PullRequest(
            topic=TOPIC,
            queue_id=0,
            queue_offset=0,
            max_count=9,
            consumer_group="g",
            subscription="n = 1",
            expression_type="SQL92",
        )
        answer = await cluster.answer("b1:10911", request.encode())
        assert ResponseCode(answer.code).name == "SYSTEM_ERROR"
        assert "enablePropertyFilter" in answer.remark
        assert await pull(cluster, 0, "a") == ("SUCCESS", "a1", 2)

    play(story, brokers=1, enablePropertyFilter=False)


def test_one_read_looks_at_so_many_messages_and_the_next_one_goes_on():
    async def story(cluster: Cluster) -> None:
        for _ in range(MAX_FILTERED // 100):
            await send(cluster, *["b1"] * 100)
        await send(cluster, "a1")
        assert await pull(cluster, 0, "a", wait_ms=1000) == (RETRY, "", MAX_FILTERED)
        assert await pull(cluster, MAX_FILTERED, "a", wait_ms=1000) == ("SUCCESS", "a1", MAX_FILTERED + 1)

    play(story, brokers=1)


@pytest.mark.parametrize("subscription", [{"tags": "a"}, {"sql": "TAGS = 'a'"}])
def test_a_pull_waits_for_a_message_that_its_reader_wants(subscription):
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1")
        begin_s = cluster.now_s
        waiting = asyncio.create_task(pull(cluster, 1, wait_ms=4_500, **subscription))
        await cluster.sleep(1)
        await send(cluster, "b2", "b3")
        await cluster.sleep(1)
        assert not waiting.done()
        await send(cluster, "a4")
        assert await waiting == ("SUCCESS", "a4", 4)
        assert 2 <= cluster.now_s - begin_s < 2.5
        waiting = asyncio.create_task(pull(cluster, 4, wait_ms=3_000, **subscription))
        await cluster.sleep(1)
        await send(cluster, "b5")
        assert await waiting == (RETRY, "", 5)
        assert 5 <= cluster.now_s - begin_s < 6

    play(story, brokers=1)


def test_compressed_bodies_are_kept_as_they_are_and_found_by_their_properties():
    async def story(cluster: Cluster) -> None:
        client = cluster.client(compress_from_bytes=10)
        for letter in ("x" * 1000, "y"):
            await client.send(TOPIC, 0, letter.encode(), properties=f"TAGS\x01{letter[0]}\x02")
        request = PullRequest(
            topic=TOPIC, queue_id=0, queue_offset=0, max_count=9, consumer_group="g", subscription="x"
        )
        raw = (await cluster.answer("b1:10911", request.encode())).body
        message = decode_message(raw, 0)
        assert message.size == len(raw) < 300
        assert message.sys_flag == 0x301
        pulled = await client.pull(TOPIC, 0, 0, 9, "g", subscription="x || y")
        assert [body for _, body in pulled.messages] == [b"x" * 1000, b"y"]
        client.close()

    play(story, brokers=1, compressedRegister=True)


def test_a_pull_without_a_subscription_goes_by_what_its_group_said_in_heartbeats():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "a1", "b2", "a3")
        data = ConsumerData(group="readers", subscriptions=(Subscription(topic=TOPIC, expression="a"),))
        assert await cluster.ask("b1", Heartbeat(client_id="m1", consumers=(data,)).encode()) == "SUCCESS"
        request = PullRequest(topic=TOPIC, queue_id=0, queue_offset=0, max_count=9, consumer_group="readers").encode()
        request.ext_fields["sysFlag"] = "0"
        answer = PullAnswer.decode(await cluster.answer("b1:10911", request))
        assert decode_message(answer.data, 0).body == b"a1"
        assert answer.next_offset == 3
        assert decode_message(answer.data, decode_message(answer.data, 0).size).body == b"a3"

    play(story, brokers=1)
