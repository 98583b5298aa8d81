"""What brokers do at the edges: empty and partial slaves, garbage on their ports, requests that make no sense."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import Language, RemotingCommand
from system_under_test.rocketmq.broker.ha import wire
from system_under_test.rocketmq.message_batch import BatchedMessage, encode_batch
from system_under_test.rocketmq.message_protocol import SendRequest
from system_under_test.rocketmq.topic import TopicConfig
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play

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
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "topic": "none"}), "TOPIC_NOT_EXIST"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "bornTimestamp": "9" * 40}), "MESSAGE_ILLEGAL"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "flag": str(2**40)}), "MESSAGE_ILLEGAL"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, bytes(17 * 1024)), "MESSAGE_ILLEGAL"),
        (
            RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "properties": "k\x01" + "x" * 40000}),
            "MESSAGE_ILLEGAL",
        ),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, "sysFlag": "16"}), "MESSAGE_ILLEGAL"),
        (RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, {"b": TOPIC}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE, {**PULL, "maxMsgNums": "0"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE, {**PULL, "queueOffset": "-1"}), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE, PULL), "PULL_NOT_FOUND"),
        (RemotingCommand.request(RequestCode.QUERY_CONSUMER_OFFSET, PULL), "QUERY_NOT_FOUND"),
        (RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, PULL), "INVALID_PARAMETER"),
        (RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, {**PULL, "commitOffset": "0"}), OK),
        (
            RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, {**PULL, "commitOffset": "1"}),
            "INVALID_PARAMETER",
        ),
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


def test_both_forms_of_a_send_are_understood():
    async def story(cluster: Cluster) -> None:
        short = {"a": "p", "b": TOPIC, "e": "0", "f": "0", "g": "0", "h": "0", "i": "KEYS\x01k\x02"}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, short, b"a")) == OK
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, b"b")) == OK
        assert await cluster.read("b1") == ["a", "b"]

    play(story, brokers=1)


def test_a_batch_comes_in_three_forms_and_is_stored_as_its_messages():
    async def story(cluster: Cluster) -> None:
        short = {"a": "p", "b": TOPIC, "e": "0", "f": "0", "g": "0", "h": "0", "m": "true"}
        forms = [
            (RequestCode.SEND_BATCH_MESSAGE, short, "ab"),
            (RequestCode.SEND_MESSAGE_V2, short, "cd"),
            (RequestCode.SEND_MESSAGE, {**SEND, "batch": "true"}, "ef"),
        ]
        for number, (code, fields, letters) in enumerate(forms):
            body = encode_batch([BatchedMessage(letter.encode(), {"KEYS": letter}) for letter in letters])
            answer = await cluster.answer("b1:10911", RemotingCommand.request(code, fields, body))
            assert answer.code == ResponseCode.SUCCESS
            assert answer.ext_fields["queueOffset"] == str(2 * number)
            first, second = answer.ext_fields["msgId"].split(",")
            assert len(first) == len(second) == 32 and int(first[16:], 16) < int(second[16:], 16)
        assert await cluster.read("b1") == list("abcdef")
        for body in (b"", b"x", encode_batch([BatchedMessage(b"a", {"DELAY": "1"})])):
            answer = RemotingCommand.request(RequestCode.SEND_BATCH_MESSAGE, short, body)
            assert await cluster.ask("b1", answer) == "MESSAGE_ILLEGAL"

    play(story, brokers=1)


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({"sysFlag": "4"}, "prepared"),
        ({"sysFlag": "8"}, "committed"),
        ({"sysFlag": "12"}, "rolled back"),
        ({"properties": "DELAY\x01soon"}, "by no level at all"),
        ({"properties": "TIMER_DELAY_SEC\x01259201"}, "by more than three days"),
        ({"properties": "TIMER_DELIVER_MS\x01noon"}, "to no time at all"),
        ({"properties": "TIMER_DEL_UNIQKEY\x01k"}, "to take another one back, at no time"),
        ({"properties": "TIMER_DELAY_MS\x010\x02TIMER_DEL_UNIQKEY\x01k"}, "to take another one back, too late"),
        ({"properties": "DELAY\x011\x02TIMER_DEL_UNIQKEY\x01k"}, "to take another one back, by a level"),
    ],
)
def test_what_consumers_must_not_see_yet_is_refused_and_never_read(fields, body):
    async def story(cluster: Cluster) -> None:
        send = RemotingCommand.request(RequestCode.SEND_MESSAGE, {**SEND, **fields}, body.encode())
        assert await cluster.ask("b1", send) == "MESSAGE_ILLEGAL"
        ordinary = {**SEND, "properties": "TRAN_MSG\x01false\x02DELAY\x010\x02"}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE, ordinary, b"seen")) == OK
        assert await cluster.read("b1") == ["seen"]

    play(story, brokers=1)


@pytest.mark.parametrize(("sys_flag", "waits"), [("2", True), ("6", True), ("0", False), ("4", False)])
def test_only_a_pull_that_says_so_waits_for_a_message(sys_flag, waits):
    async def story(cluster: Cluster) -> None:
        pull = {**PULL, "sysFlag": sys_flag, "suspendTimeoutMillis": "2000"}
        started_s = cluster.now_s
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.PULL_MESSAGE, pull)) == "PULL_NOT_FOUND"
        assert (cluster.now_s - started_s >= 2) == waits

    play(story, brokers=1)


def test_a_pull_that_waits_is_answered_when_a_message_comes():
    async def story(cluster: Cluster) -> None:
        pull = {**PULL, "sysFlag": "2", "suspendTimeoutMillis": "20000"}
        started_s = cluster.now_s
        waiting = cluster.begin(cluster.ask("b1", RemotingCommand.request(RequestCode.PULL_MESSAGE, pull)))
        await cluster.sleep(1)
        assert await cluster.send("b1", "a") == [OK]
        assert await waiting == OK
        assert cluster.now_s - started_s < 2

    play(story, brokers=1)


def test_a_pull_commits_where_its_flag_says_so():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        for flags, offset, code, committed in (
            ("0", "1", OK, None),
            ("2", "1", OK, None),
            ("1", "1", OK, 1),
            ("3", "2", OK, 2),
            ("1", "3", OK, 2),
            ("1", "-1", OK, 2),
            ("1", "x", "INVALID_PARAMETER", 2),
        ):
            pull = {**PULL, "sysFlag": flags, "commitOffset": offset}
            assert await cluster.ask("b1", RemotingCommand.request(RequestCode.PULL_MESSAGE, pull)) == code
            assert await cluster.committed("b1", "c") == committed
        assert await cluster.ask("b2", RemotingCommand.request(RequestCode.PULL_MESSAGE, {**PULL, "sysFlag": "1"})) == (
            "INVALID_PARAMETER"
        )

    play(story)


def test_a_group_may_commit_up_to_the_end_of_its_queue_and_not_beyond():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        codes = []
        for offset in ("3", "9223372036854775807", "9" * 40, "2"):
            commit = {**PULL, "commitOffset": offset}
            codes.append(await cluster.ask("b1", RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, commit)))
        assert codes == ["INVALID_PARAMETER"] * 3 + [OK]

    play(story, brokers=1)


JAVA_RETRIES = {"TOPIC_NOT_EXIST", "SERVICE_NOT_AVAILABLE", "SYSTEM_ERROR", "SYSTEM_BUSY", "NO_PERMISSION"}
"""Upon these RocketMQ's producers ask again."""


def from_java(request: SendRequest) -> RemotingCommand:
    command = request.encode()
    command.language = Language.JAVA
    return command


def test_a_public_producer_is_told_in_words_that_it_knows_why_nothing_was_written():
    async def story(cluster: Cluster) -> None:
        request = SendRequest(topic=TOPIC, queue_id=0, body=b"x", born_timestamp_ms=0)
        assert await cluster.ask("b2", request.encode()) == "NOT_MASTER"
        assert await cluster.ask("b2", from_java(request)) == "SERVICE_NOT_AVAILABLE"
        assert await cluster.ask("b1", from_java(replace(request, topic="nowhere"))) == "TOPIC_NOT_EXIST"
        await cluster.kill("b2")
        await cluster.until_members(1)
        assert await cluster.ask("b1", request.encode()) == "IN_SYNC_REPLICAS_NOT_ENOUGH"
        answer = await cluster.answer("b1:10911", from_java(request))
        assert ResponseCode(answer.code).name == "SYSTEM_ERROR"
        assert "in-sync replicas not enough" in answer.remark
        assert await cluster.read("b1") == []

    play(story, brokers=2, minInSyncReplicas=2)


def test_a_producer_may_leave_the_queue_to_the_broker():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", TopicConfig.of("wide", 4)) == OK
        request = SendRequest(topic="wide", queue_id=-1, body=b"x", born_timestamp_ms=0)
        queues = [(await cluster.answer("b1:10911", request.encode())).ext_fields["queueId"] for _ in range(40)]
        assert set(queues) == set("0123")

    play(story, brokers=1)
