"""The texts of POP are RocketMQ's: what is written here its clients and brokers read, and the other way round."""

from __future__ import annotations

import json

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.broker.pop.records import (
    Again,
    Checkpoint,
    CheckpointKey,
    Settlement,
    decode_record,
    encode_record,
)
from system_under_test.rocketmq.broker.pop.redelivery import original_topic
from system_under_test.rocketmq.broker.pop.revive_log import revive_topic
from system_under_test.rocketmq.pop_protocol import (
    BatchedAcks,
    ChangedInvisibleTime,
    HandleRequest,
    InitMode,
    PopAnswer,
    PoppedQueue,
    PopRequest,
    ReceiptHandle,
    dead_letter_topic,
    decode_batch_ack,
    encode_batch_ack,
    retry_topic,
)
from system_under_test.rocketmq.topic import check_name

HANDLE = ReceiptHandle(10, 1700000000000, 60000, 3, False, "broker-a", 2, 12)
TEXT = "10 1700000000000 60000 3 0 broker-a 2 12"
KEY = CheckpointKey("g", "t", 2, 10, 1700000000000)


def test_a_receipt_handle_is_rocketmqs_extra_info() -> None:
    assert HANDLE.encode() == TEXT
    assert ReceiptHandle.decode(TEXT) == HANDLE
    assert ReceiptHandle.decode(TEXT.replace(" 0 broker", " 1 broker")).topic("g", "t") == "%RETRY%g_t"
    assert HANDLE.topic("g", "t") == "t"


@pytest.mark.parametrize(
    "text", ["", "1 2 3", TEXT + " 1", TEXT.replace(" 0 b", " 2 b"), TEXT.replace("12", "x"), "9" * 30 + TEXT[2:]]
)
def test_what_is_no_receipt_handle_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no receipt handle|invalid literal|a number of"):
        ReceiptHandle.decode(text)


def test_topics_through_which_messages_come_again_and_where_they_end() -> None:
    assert retry_topic("g", "t") == "%RETRY%g_t"
    assert dead_letter_topic("g") == "%DLQ%g"
    assert original_topic("g", "%RETRY%g_t_u") == "t_u"
    assert original_topic("g", "t") == "t"


def test_a_pop_has_rocketmqs_fields_and_is_read_as_it_was_written() -> None:
    request = PopRequest(
        topic="t", consumer_group="g", invisible_ms=5, max_count=7, poll_ms=9, born_ms=11, init_mode=InitMode.MAX
    )
    command = request.encode()
    assert command.code == 200050
    assert command.ext_fields == {
        "consumerGroup": "g",
        "topic": "t",
        "queueId": "-1",
        "maxMsgNums": "7",
        "invisibleTime": "5",
        "pollTime": "9",
        "bornTime": "11",
        "initMode": "1",
        "expType": "TAG",
        "exp": "*",
        "order": "false",
    }
    assert PopRequest.decode(command) == request


def test_an_answer_says_for_each_queue_where_its_checkpoint_begins_and_which_messages_there_are() -> None:
    answer = PopAnswer(
        pop_time_ms=1700000000000,
        invisible_ms=60000,
        revive_queue=3,
        queues=(PoppedQueue(False, 2, 10, (10, 12)), PoppedQueue(True, 0, 5, (5,))),
        data=b"messages",
        rest=4,
    )
    command = answer.encode()
    assert command.ext_fields == {
        "popTime": "1700000000000",
        "invisibleTime": "60000",
        "reviveQid": "3",
        "restNum": "4",
        "startOffsetInfo": "0 2 10;1 0 5",
        "msgOffsetInfo": "0 2 10,12;1 0 5",
    }
    assert PopAnswer.decode(command) == answer
    assert [handle.encode() for handle in answer.handles("broker-a")] == [
        TEXT.replace(" 12", " 10"),
        TEXT,
        "5 1700000000000 60000 3 1 broker-a 0 5",
    ]


def test_an_acknowledgement_names_the_message_and_its_handle() -> None:
    request = HandleRequest(topic="t", consumer_group="g", handle=HANDLE)
    assert request.encode().code == 200051
    assert request.encode().ext_fields == {
        "consumerGroup": "g",
        "topic": "t",
        "queueId": "2",
        "extraInfo": TEXT,
        "offset": "12",
    }
    assert HandleRequest.decode(request.encode()) == request
    # RocketMQ's older clients leave the message's offset out of the handle.
    short = {**request.encode().ext_fields, "extraInfo": TEXT.rpartition(" ")[0]}
    assert HandleRequest.decode(RemotingCommand.request(RequestCode.ACK_MESSAGE, short)) == request


def test_another_invisible_time_is_answered_with_what_is_new_of_the_handle() -> None:
    request = HandleRequest(topic="t", consumer_group="g", handle=HANDLE, invisible_ms=7)
    assert request.encode().code == 200053
    assert HandleRequest.decode(request.encode()) == request
    answer = ChangedInvisibleTime.decode(ChangedInvisibleTime(pop_time_ms=9, invisible_ms=7, revive_queue=1).encode())
    assert answer.of(HANDLE).encode() == "12 9 7 1 0 broker-a 2 12"


def test_acknowledgements_of_one_checkpoint_are_bits_behind_its_beginning() -> None:
    others = [HANDLE._replace(offset=10), HANDLE._replace(start_offset=5, offset=5, is_retried=True, queue_id=0)]
    command = encode_batch_ack("g", "t", [HANDLE, *others])
    body = json.loads(command.body)
    assert command.code == 200151
    assert body["brokerName"] == "broker-a"
    assert [(ack["so"], ack["r"], ack["b"]) for ack in body["acks"]] == [(10, "0", "BQ=="), (5, "1", "AQ==")]
    assert decode_batch_ack(command) == (
        BatchedAcks("g", "t", 2, 10, 1700000000000, (10, 12)),
        BatchedAcks("g", "%RETRY%g_t", 0, 5, 1700000000000, (5,)),
    )


@pytest.mark.parametrize("body", [b"", b"{}", b'{"acks":{}}', b'{"acks":[{}]}', b'{"acks":[{"c":"g","b":"!"}]}'])
def test_what_is_no_batch_of_acknowledgements_is_refused(body: bytes) -> None:
    with pytest.raises(RemotingError) as refusal:
        decode_batch_ack(RemotingCommand.request(RequestCode.BATCH_ACK_MESSAGE, body=body))
    assert refusal.value.code == ResponseCode.INVALID_PARAMETER


def test_records_of_the_revive_log_have_rocketmqs_names() -> None:
    checkpoint = Checkpoint(key=KEY, invisible_ms=60000, offsets=(10, 12), broker_name="broker-a")
    tag, body = encode_record(checkpoint)
    assert tag == "ck"
    assert json.loads(body) == {
        "c": "g",
        "t": "t",
        "q": 2,
        "so": 10,
        "pt": 1700000000000,
        "bn": "broker-a",
        "it": 60000,
        "bm": 0,
        "n": 2,
        "ro": 0,
        "d": [0, 2],
    }
    tag, body = encode_record(Settlement(key=KEY, offsets=(12,), broker_name="broker-a"))
    assert (tag, json.loads(body)["ao"]) == ("ack", 12)
    again = Settlement(key=KEY, offsets=(10, 12), broker_name="b", again=Again("%RETRY%g_t", (0, 1)))
    tag, body = encode_record(again)
    assert (tag, json.loads(body)["aol"]) == ("bAck", [10, 12])
    assert decode_record(tag, body) == again


@pytest.mark.parametrize(
    ("tag", "change"),
    [
        ("ck", {"d": [0, 0]}),
        ("ck", {"d": [2, 0]}),
        ("ck", {"d": list(range(33))}),
        ("ck", {"d": None}),
        ("ck", {"so": "10"}),
        ("ck", {"replaces": {"so": 1}}),
        ("bAck", {"aol": [1], "again": {"t": "t", "qo": []}}),
        ("", {}),
        ("other", {}),
    ],
)
def test_what_is_no_record_is_refused(tag: str, change: dict[str, object]) -> None:
    _, body = encode_record(Checkpoint(key=KEY, invisible_ms=1, offsets=(10,), broker_name="b"))
    with pytest.raises(ValueError, match=r"expected|ascend|no record|as many"):
        decode_record(tag, json.dumps({**json.loads(body), **change}).encode())


def test_any_name_of_a_cluster_gives_the_revive_log_a_name_that_a_topic_may_have() -> None:
    assert revive_topic("DefaultCluster") == "rmq_sys_REVIVE_LOG_DefaultCluster"
    assert revive_topic("my.cluster é") == "rmq_sys_REVIVE_LOG_my_cluster__"
    check_name(revive_topic("x" * 500))
