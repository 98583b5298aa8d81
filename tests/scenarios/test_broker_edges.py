"""What brokers do at the edges: empty and partial slaves, garbage on their ports, requests that make no sense."""

from __future__ import annotations

import pytest

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.ha import wire
from tests.scenarios.broker_cluster import TOPIC, Cluster, play

OK = "SUCCESS"
LETTERS = [f"{number:04d}" * 1000 for number in range(40)]
"""About 160 KiB: more than two files of 64 KiB."""


def test_an_empty_slave_copies_all_from_the_first_file_and_joins():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *LETTERS) == [OK] * len(LETTERS)
        await cluster.add("b2")
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b2") == await cluster.read("b1")

    play(story, brokers=1)


def test_a_slave_that_began_at_the_last_file_follows_but_never_joins_not_even_after_a_restart():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *LETTERS) == [OK] * len(LETTERS)
        await cluster.add("b2")
        await cluster.until(lambda: follows(cluster), 10)
        await cluster.kill("b2")
        await cluster.boot("b2")
        await cluster.until(lambda: follows(cluster), 10)
        assert await cluster.send("b1", "a") == [OK]
        await cluster.until(lambda: follows(cluster), 10)
        await cluster.sleep(30)
        assert await cluster.members() == (1,)

    play(story, brokers=1, syncFromLastFile=True)


async def follows(cluster: Cluster) -> bool:
    return (await cluster.log("b2")).max_offset == (await cluster.log("b1")).max_offset


HANDSHAKE = wire.encode_slave_handshake(wire.SlaveHandshake(False, False, 9))


@pytest.mark.parametrize(
    "messages",
    [
        (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",),
        (HANDSHAKE, wire.encode_ack(10**12)),
        (HANDSHAKE, wire.encode_ack(0), wire.encode_ack(10**12)),
        (HANDSHAKE, HANDSHAKE),
    ],
    ids=["another protocol", "first ack beyond the end", "later ack beyond the end", "no ack at all"],
)
def test_garbage_on_the_ha_port_closes_that_connection_and_no_other(messages):
    async def story(cluster: Cluster) -> None:
        assert await cluster.knock("b1", *messages)
        assert await cluster.send("b1", "a") == [OK]
        assert await cluster.members() == (1, 2)

    play(story)


def test_a_second_connection_of_a_slave_does_not_count_twice_and_the_slave_comes_back():
    async def story(cluster: Cluster) -> None:
        impostor = wire.encode_slave_handshake(wire.SlaveHandshake(False, False, 2))
        await cluster.knock("b1", impostor, wire.encode_ack(0))
        await cluster.until_members(1, 2)
        assert await cluster.send("b1", "a") == [OK]
        await cluster.until_equal("b1", "b2")

    play(story)


SEND = {"producerGroup": "p", "topic": TOPIC, "queueId": "0", "bornTimestamp": "0"}
PULL = {"consumerGroup": "c", "topic": TOPIC, "queueId": "0", "queueOffset": "0", "maxMsgNums": "1"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (RemotingCommand.request(31999), "REQUEST_CODE_NOT_SUPPORTED"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "queueId": "one"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "queueId": "7"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "queueId": "-1"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "topic": "none"}), "TOPIC_NOT_EXIST"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "bornTimestamp": "9" * 40}), "MESSAGE_ILLEGAL"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "flag": str(2**40)}), "MESSAGE_ILLEGAL"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, bytes(17 * 1024)), "MESSAGE_ILLEGAL"),
        (
            RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "properties": "k\x01" + "x" * 40000}),
            "MESSAGE_ILLEGAL",
        ),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, {"b": TOPIC}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE, {**PULL, "maxMsgNums": "0"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE, {**PULL, "queueOffset": "-1"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE, PULL), "PULL_NOT_FOUND"),
        (RemotingCommand.request(RequestCode.QUERY_CONSUMER_OFFSET, PULL), "QUERY_NOT_FOUND"),
        (RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, PULL), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.NOTIFY_BROKER_ROLE_CHANGED), "INVALID_PARAMETER"),
        (
            RemotingCommand.request(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, {"masterEpoch": "7"}, b"[1,2"),
            "INVALID_PARAMETER",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_answered_with_a_code(command, code):
    async def story(cluster: Cluster) -> None:
        assert await cluster.ask("b1", command) == code
        assert await cluster.send("b1", "a") == [OK]

    play(story, brokers=1)


def test_both_forms_of_a_send_are_understood_and_a_batch_is_refused():
    async def story(cluster: Cluster) -> None:
        short = {"a": "p", "b": TOPIC, "e": "0", "f": "0", "g": "0", "h": "0", "i": "KEYS\x01k\x02"}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, short, b"a")) == OK
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, b"b")) == OK
        batch = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, {**short, "m": "true"}, b"x")
        assert await cluster.ask("b1", batch) == "MESSAGE_ILLEGAL"
        assert await cluster.read("b1") == ["a", "b"]

    play(story, brokers=1)


def test_a_pull_that_may_wait_is_answered_when_a_message_comes():
    async def story(cluster: Cluster) -> None:
        waiting = RemotingCommand.request(RequestCode.PULL_MESSAGE, {**PULL, "suspendTimeoutMillis": "2000"})
        started_s = cluster.now_s
        assert await cluster.ask("b1", waiting) == "PULL_NOT_FOUND"
        assert cluster.now_s - started_s >= 2

    play(story, brokers=1)
