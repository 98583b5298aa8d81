"""Requests about messages: RocketMQ's header names, both forms of a send, garbage refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.message_protocol import (
    PullAnswer,
    PullRequest,
    QueueRequest,
    SendAnswer,
    SendRequest,
)

SEND = SendRequest(topic="T", queue_id=3, body=b"body", born_timestamp_ms=17, properties="K\x01v\x02")
PULL = PullRequest(topic="T", queue_id=3, queue_offset=41, max_count=32, consumer_group="G")


def over_the_wire(command: RemotingCommand) -> RemotingCommand:
    return RemotingCommand.decode(command.encode()[4:])


def test_requests_and_answers_survive_the_wire():
    assert SendRequest.decode(over_the_wire(SEND.encode())) == SEND
    assert PullRequest.decode(over_the_wire(PULL.encode())) == PULL
    queue = QueueRequest(topic="T", queue_id=3, consumer_group="G", commit_offset=5)
    assert QueueRequest.decode(over_the_wire(queue.encode(RequestCode.UPDATE_CONSUMER_OFFSET))) == queue
    bare = QueueRequest(topic="T", queue_id=3)
    assert QueueRequest.decode(over_the_wire(bare.encode(RequestCode.GET_MAX_OFFSET))) == bare
    send_answer = SendAnswer(message_id="id", queue_id=3, queue_offset=41)
    assert SendAnswer.decode(over_the_wire(send_answer.encode(ResponseCode.FLUSH_DISK_TIMEOUT))) == send_answer
    pull_answer = PullAnswer(next_offset=42, min_offset=0, max_offset=50, data=b"\0data")
    assert PullAnswer.decode(over_the_wire(pull_answer.encode())) == pull_answer


def test_a_send_has_the_header_that_brokers_require():
    assert set(SEND.encode().ext_fields) >= {
        "producerGroup",
        "topic",
        "defaultTopic",
        "defaultTopicQueueNums",
        "queueId",
        "sysFlag",
        "bornTimestamp",
        "flag",
        "properties",
        "reconsumeTimes",
        "unitMode",
        "batch",
    }


def test_a_pull_has_the_header_that_brokers_require():
    assert set(PULL.encode().ext_fields) == {
        "consumerGroup",
        "topic",
        "queueId",
        "queueOffset",
        "maxMsgNums",
        "sysFlag",
        "commitOffset",
        "suspendTimeoutMillis",
        "subscription",
        "subVersion",
        "expressionType",
    }


def test_a_pull_may_wait_only_where_its_flag_says_so():
    waiting = PullRequest(
        topic="T", queue_id=3, queue_offset=41, max_count=32, consumer_group="G", suspend_timeout_ms=9
    )
    fields = waiting.encode().ext_fields
    assert PullRequest.decode(over_the_wire(waiting.encode())).suspend_timeout_ms == 9
    for flags, timeout_ms in (("0", 0), ("1", 0), ("2", 9), ("4", 0), ("6", 9)):
        command = RemotingCommand.request(RequestCode.PULL_MESSAGE, {**fields, "sysFlag": flags})
        assert PullRequest.decode(command).suspend_timeout_ms == timeout_ms


def test_the_short_form_of_a_send_means_the_same():
    fields = {
        "a": "DEFAULT_PRODUCER",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": "3",
        "f": "0",
        "g": "17",
        "h": "0",
        "i": "K\x01v\x02",
        "j": "0",
        "k": "false",
        "l": "16",
        "m": "false",
        "n": "broker-a",
        "unheardOf": "x",
    }
    decoded = SendRequest.decode(RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"body"))
    assert decoded == replace(SEND, max_reconsume_times=16)


def test_a_batch_goes_out_with_short_names_and_is_understood_with_long_ones():
    batch = replace(SEND, is_batch=True)
    command = batch.encode()
    assert command.code == RequestCode.SEND_BATCH_MESSAGE and command.ext_fields["m"] == "true"
    assert SendRequest.decode(command) == batch
    fields = {**SEND.encode().ext_fields, "batch": "true"}
    assert SendRequest.decode(RemotingCommand.request(RequestCode.SEND_MESSAGE, fields, SEND.body)) == batch


@pytest.mark.parametrize("decode", [SendRequest.decode, PullRequest.decode, QueueRequest.decode])
@pytest.mark.parametrize("fields", [{}, {"topic": "T", "queueId": "three"}])
def test_a_header_with_missing_or_wrong_fields_is_refused(decode, fields):
    with pytest.raises(RemotingError) as refusal:
        decode(RemotingCommand.request(RequestCode.SEND_MESSAGE, fields))
    assert refusal.value.code == ResponseCode.INVALID_PARAMETER
