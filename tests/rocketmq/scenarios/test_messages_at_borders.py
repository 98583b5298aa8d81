"""Messages at the borders of what is taken: whatever was taken can be worked on, and holds up nobody behind it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from system_under_test.rocketmq.broker import admission
from system_under_test.rocketmq.broker.admission import ADDED_BYTES
from system_under_test.rocketmq.consumer_protocol import SendBackRequest, dead_letter_topic, retry_topic
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, SendAnswer, SendRequest
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    Code,
    Publishing,
    Resource,
    Settings,
    Subscription,
    SubscriptionEntry,
    TelemetryCommand,
)
from system_under_test.rocketmq.topic import MAX_NAME, TopicConfig
from system_under_test.rocketmq.transaction_protocol import Decision, EndTransaction
from system_under_test.storage.message import (
    MAX_PROPERTIES_BYTES,
    Message,
    decode_message,
    encode_properties,
    message_bytes,
)
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.proxy_calls import NAMED
from tests.rocketmq.scenarios.test_proxy_transactions import producer

OK, ILLEGAL = "SUCCESS", "MESSAGE_ILLEGAL"
MOST = 16 * 1024
LONG = "t" * MAX_NAME
"""The longest name that a topic may have."""
GROUP = "g" * (MAX_NAME - len(retry_topic("")))
SOON = {"messageDelayLevel": "1s 1s 1s 1s", "timerPrecisionMs": 100}


def message(body: bytes | None, topic: str = TOPIC, beyond: int = 0, **fields: object) -> SendRequest:
    """With as large a body as may be, and so many bytes more, unless a body is given."""
    properties = fields.pop("properties", {})
    assert isinstance(properties, Mapping)
    encoded = encode_properties(properties)
    if body is None:
        body = b"x" * (MOST + beyond - message_bytes(topic.encode(), b"", encoded))
    return SendRequest(topic=topic, queue_id=0, body=body, born_timestamp_ms=0, properties=encoded.decode(), **fields)  # type: ignore[arg-type]


async def stored(cluster: Cluster, topic: str, node: str = "b1") -> list[Message]:
    request = PullRequest(topic=topic, queue_id=0, queue_offset=0, max_count=32, consumer_group="readers")
    data = PullAnswer.decode(await cluster.answer(f"{node}:10911", request.encode())).data
    messages: list[Message] = []
    while sum(each.size for each in messages) < len(data):
        messages.append(decode_message(data, sum(each.size for each in messages)))
    return messages


async def until_stored(cluster: Cluster, topic: str, bodies: list[bytes], within_s: float = 10) -> None:
    async def are_there() -> bool:
        return [each.body for each in await stored(cluster, topic)] == bodies

    await cluster.until(are_there, within_s)


async def send_back(cluster: Cluster, offset: int, group: str, level: int = 0) -> str:
    request = SendBackRequest(offset=offset, group=group, delay_level=level, origin_topic=LONG)
    return await cluster.ask("b1", request.encode())


async def long_topic(cluster: Cluster) -> None:
    assert await cluster.make_topic("b1", TopicConfig.of(LONG, 1)) == OK


@pytest.mark.parametrize(
    "waits", [{"DELAY": "1"}, {"TIMER_DELAY_MS": "900"}, {"TIMER_DELAY_MS": "4000"}], ids=["level", "timer", "rolls"]
)
def test_what_waits_comes_out_however_large_it_is_and_so_does_what_is_behind_it(waits: dict[str, str]):
    async def story(cluster: Cluster) -> None:
        await long_topic(cluster)
        large = message(None, LONG, properties=waits)
        assert await cluster.ask("b1", large.encode()) == OK
        assert await cluster.ask("b1", message(b"behind", LONG, properties=waits).encode()) == OK
        await until_stored(cluster, LONG, [large.body, b"behind"])
        assert await cluster.ask("b1", message(None, LONG, beyond=1, properties=waits).encode()) == ILLEGAL

    play(story, timerWheelSlots=80, timerRollWindowSlot=20, **SOON)


@pytest.mark.parametrize("waits", [{}, {"DELAY": "1"}, {"TIMER_DELAY_MS": "900"}], ids=["at once", "level", "timer"])
def test_a_transaction_commits_however_large_its_message_is(waits: dict[str, str]):
    async def story(cluster: Cluster) -> None:
        await long_topic(cluster)
        properties = {"TRAN_MSG": "true", "UNIQ_KEY": "k" * 100, **waits}
        # What names producer and transaction counts, so the greatest body is looked for.
        answers = {}
        for short in range(1024, -1, -8):
            sent = message(b"x" * (len(message(None, LONG, properties=properties).body) - short), LONG)
            half = message(sent.body, LONG, properties=properties, producer_group="p" * 200)
            answers[short] = answer = await cluster.answer("b1:10911", half.encode())
            if answer.code != 0:
                break
            taken = answer, half.body
        assert 0 < short < 1024
        answer, body = taken
        place = SendAnswer.decode(answer)
        end = EndTransaction(
            producer_group="p" * 200,
            queue_offset=place.queue_offset,
            log_offset=int(place.message_id[16:], 16),
            decision=Decision.COMMIT,
        )
        assert await cluster.ask("b1", end.encode()) == OK
        await until_stored(cluster, LONG, [body])

    play(story, **SOON)


def test_what_could_not_be_consumed_is_sent_back_however_large_it_is_until_it_is_a_dead_letter():
    async def story(cluster: Cluster) -> None:
        await long_topic(cluster)
        large = message(None, LONG)
        assert await cluster.ask("b1", large.encode()) == OK
        (first,) = await stored(cluster, LONG)
        assert await send_back(cluster, first.physical_offset, GROUP) == OK
        await until_stored(cluster, retry_topic(GROUP), [large.body])
        (again,) = await stored(cluster, retry_topic(GROUP))
        assert again.reconsume_times == 1
        assert await send_back(cluster, again.physical_offset, GROUP, level=-1) == OK
        await until_stored(cluster, dead_letter_topic(GROUP), [large.body])

    play(story, brokers=1, **SOON)


def test_the_greatest_count_of_times_stays_and_ends_no_master():
    async def story(cluster: Cluster) -> None:
        often = message(b"often", reconsume_times=2**31 - 1)
        assert await cluster.ask("b1", often.encode()) == OK
        (first,) = await stored(cluster, TOPIC)
        request = SendBackRequest(
            offset=first.physical_offset, group="g", delay_level=1, origin_topic=TOPIC, max_reconsume_times=2**40
        )
        assert await cluster.ask("b1", request.encode()) == OK
        await until_stored(cluster, retry_topic("g"), [b"often"])
        assert [each.reconsume_times for each in await stored(cluster, retry_topic("g"))] == [2**31 - 1]
        assert await send_back(cluster, first.physical_offset, "g") == OK
        await until_stored(cluster, dead_letter_topic("g"), [b"often"])
        assert await cluster.ask("b1", message(b"x", reconsume_times=2**31).encode()) == ILLEGAL

    play(story, **SOON)


@pytest.mark.parametrize("kind", [4, 5, 6, 7])
def test_a_body_that_nobody_can_read_is_refused(kind: int):
    async def story(cluster: Cluster) -> None:
        assert await cluster.ask("b1", message(b"x", sys_flag=1 | kind << 8).encode()) == ILLEGAL
        assert await cluster.ask("b1", message(b"x", sys_flag=kind << 8).encode()) == OK, "it is not compressed"

    play(story, brokers=1)


def test_what_takes_a_timer_back_is_of_no_transaction():
    async def story(cluster: Cluster) -> None:
        properties = {"TRAN_MSG": "true", "TIMER_DEL_UNIQKEY": "k", "TIMER_DELAY_SEC": "5"}
        assert await cluster.ask("b1", message(b"x", properties=properties).encode()) == ILLEGAL

    play(story, brokers=1)


def test_properties_leave_room_for_those_of_the_broker():
    async def story(cluster: Cluster) -> None:
        longest = MAX_PROPERTIES_BYTES - ADDED_BYTES - len(encode_properties({"k": "", "DELAY": "1"}))
        for length, code in ((longest, OK), (longest + 1, ILLEGAL)):
            properties = {"k": "v" * length, "DELAY": "1"}
            assert await cluster.ask("b1", message(b"x", properties=properties).encode()) == code
        await until_stored(cluster, TOPIC, [b"x"])

    play(story, brokers=1, maxMessageSize=64 * 1024, mappedFileSizeCommitLog=1 << 20, **SOON)


@pytest.mark.parametrize("waits", [{"DELAY": "1"}, {"TIMER_DELAY_MS": "4000"}], ids=["level", "rolls"])
@pytest.mark.parametrize("mode", ["SINGLE", "LEVEL", "ASYNC"])
def test_what_the_log_can_never_take_is_set_aside_and_told(
    waits: dict[str, str], mode: str, monkeypatch: pytest.MonkeyPatch
):
    async def story(cluster: Cluster) -> None:
        await long_topic(cluster)
        with monkeypatch.context() as patch:
            # As a broker took it that left no room: the largest that can wait.
            patch.setattr(admission, "ADDED_BYTES", 0)
            large = len(message(None, LONG, properties=waits).body)
            while await cluster.ask("b1", message(b"x" * large, LONG, properties=waits).encode()) != OK:
                large -= 1
        assert await cluster.ask("b1", message(b"behind", LONG, properties=waits).encode()) == OK
        await until_stored(cluster, LONG, [b"behind"])
        (told,) = cluster.reported("b1", "undelivered")
        assert "do not fit into a segment" in told["reason"]

    room = {"mappedFileSizeCommitLog": MOST, "timerWheelSlots": 80, "timerRollWindowSlot": 20}
    play(story, scheduleDeliveryMode=mode, **room, **SOON)


def test_what_a_client_asks_of_a_proxy_with_long_names_ends_it_never():
    async def story(cluster: Cluster) -> None:
        long = Resource(name="n" * (2 << 20))
        for wanted in (
            {"publishing": Publishing(topics=[long])},
            {"subscription": Subscription(group=long, subscriptions=[SubscriptionEntry(topic=NAMED)])},
            {"subscription": Subscription(group=NAMED, subscriptions=[SubscriptionEntry(topic=long)])},
        ):
            stream = await cluster.grpc.open("p1:8081", f"{SERVICE}Telemetry", {"x-mq-client-id": "client-1"})
            await stream.send(TelemetryCommand(settings=Settings(**wanted)).encode())
            answer = TelemetryCommand.decode(await stream.receive())
            assert answer.status.code in (Code.ILLEGAL_TOPIC, Code.ILLEGAL_CONSUMER_GROUP)
        await cluster.sleep(15)
        assert not cluster.dead()

    play(story, brokers=1, proxies=["p1"])


def test_a_question_that_cannot_be_put_to_its_producer_ends_no_proxy(monkeypatch: pytest.MonkeyPatch):
    async def story(cluster: Cluster) -> None:
        with monkeypatch.context() as patch:
            # As a broker took it that looked at no flags.
            patch.setattr(admission, "compression_of", lambda _: None)
            half = message(b"x", properties={"TRAN_MSG": "true"}, sys_flag=1 | 7 << 8, producer_group=TOPIC)
            assert await cluster.ask("b1", half.encode()) == OK
        stream = await producer(cluster)
        await cluster.until_said("p1", "question_unreadable")
        assert not cluster.dead()
        stream.end()

    play(story, brokers=1, proxies=["p1"], transactionTimeOut=1_000, transactionCheckInterval=1_000)
