"""Messages received through the proxy: acknowledged, renewed, given back, and what comes again."""

from __future__ import annotations

import json
from dataclasses import replace

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    Code,
    Duration,
    FilterExpression,
    FilterType,
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    PullMessageRequest,
    PullMessageResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    Subscription,
    SubscriptionEntry,
    TelemetryCommand,
    UserMessage,
)
from tests.rocketmq.scenarios.broker_cluster import Cluster, play
from tests.rocketmq.scenarios.proxy_calls import NAMED, letter, queue

READERS = Resource(name="readers")
ALL = FilterExpression(expression="*", type=FilterType.TAG)


async def send(cluster: Cluster, *messages: UserMessage) -> None:
    request = SendMessageRequest(messages=list(messages))
    assert (await cluster.call("p1", "SendMessage", request, SendMessageResponse)).status.code == Code.OK


async def receive(
    cluster: Cluster, *, client_id: str = "client-1", wanted: FilterExpression = ALL, wait_s: int = 0, **request: object
) -> list[UserMessage]:
    """What a pop of any queue gives."""
    asked = ReceiveMessageRequest(
        group=READERS,
        message_queue=queue(-1),
        filter_expression=wanted,
        long_polling_timeout=Duration(seconds=wait_s),
        **{"batch_size": 32, **request},
    )
    answers = await cluster.calls("p1", "ReceiveMessage", asked, ReceiveMessageResponse, client_id)
    assert answers[0].status is not None
    assert answers[0].status.code == (Code.OK if len(answers) > 1 else Code.MESSAGE_NOT_FOUND)
    return [answer.message for answer in answers if answer.message is not None]


async def acknowledge(cluster: Cluster, *messages: UserMessage) -> list[int]:
    """The codes of the entries."""
    entries = [
        AckMessageEntry(
            message_id=message.system_properties.message_id, receipt_handle=message.system_properties.receipt_handle
        )
        for message in messages
    ]
    request = AckMessageRequest(group=READERS, topic=NAMED, entries=entries)
    answer = await cluster.call("p1", "AckMessage", request, AckMessageResponse)
    return [entry.status.code for entry in answer.entries]


def bodies(messages: list[UserMessage]) -> list[bytes]:
    return sorted(message.body for message in messages)


def test_received_and_pulled_is_what_an_sql_filter_lets_through() -> None:
    async def story(cluster: Cluster) -> None:
        heavy = replace(letter("b"), user_properties={"weight": "7"})
        await send(cluster, letter("a"), heavy, replace(letter("c"), user_properties={"weight": "2"}))
        by_weight = FilterExpression(expression="weight > 5", type=FilterType.SQL)
        request = PullMessageRequest(group=READERS, message_queue=queue(), batch_size=32, filter_expression=by_weight)
        pulled = await cluster.calls("p1", "PullMessage", request, PullMessageResponse)
        assert [answer.message.body for answer in pulled if answer.message is not None] == [b"b"]
        assert bodies(await receive(cluster, wanted=by_weight, invisible_duration=Duration(seconds=10))) == [b"b"]
        refused = replace(request, filter_expression=FilterExpression(expression="weight >", type=FilterType.SQL))
        status = (await cluster.calls("p1", "PullMessage", refused, PullMessageResponse))[0].status
        assert status is not None and status.code == Code.ILLEGAL_FILTER_EXPRESSION

    play(story, proxies=["p1"])


def test_what_is_acknowledged_does_not_come_again_and_what_is_not_does() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("a", tag="t"), letter("b"))
        messages = await receive(cluster, invisible_duration=Duration(seconds=10))
        assert bodies(messages) == [b"a", b"b"]
        first = next(message for message in messages if message.body == b"a")
        assert (first.topic, first.system_properties.tag, first.system_properties.delivery_attempt) == (NAMED, "t", 1)
        assert await acknowledge(cluster, first) == [Code.OK]
        assert await acknowledge(cluster, first) == [Code.INVALID_RECEIPT_HANDLE]
        assert await receive(cluster, invisible_duration=Duration(seconds=10)) == []
        again = await receive(cluster, invisible_duration=Duration(seconds=10), wait_s=20)
        assert [(each.body, each.system_properties.delivery_attempt) for each in again] == [(b"b", 2)]
        assert (again[0].topic, again[0].system_properties.message_id) == (NAMED, "id-b")
        assert await acknowledge(cluster, *again) == [Code.OK]

    play(story, proxies=["p1"])


def test_what_a_living_client_holds_does_not_come_again_however_long_it_takes() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("slow"))
        (held,) = await receive(cluster, auto_renew=True)
        for _ in range(10):
            await cluster.sleep(30)
            await cluster.call("p1", "Heartbeat", HeartbeatRequest(), HeartbeatResponse)
            assert await receive(cluster, client_id="another", auto_renew=True) == []
        assert await acknowledge(cluster, held) == [Code.OK]
        await cluster.sleep(100)
        assert await receive(cluster, client_id="another", auto_renew=True) == []

    play(story, proxies=["p1"])


def test_what_a_client_held_that_is_gone_comes_again_soon() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("a"))
        assert bodies(await receive(cluster, auto_renew=True)) == [b"a"]
        request = NotifyClientTerminationRequest(group=READERS)
        await cluster.call("p1", "NotifyClientTermination", request, NotifyClientTerminationResponse)
        (again,) = await receive(cluster, client_id="another", auto_renew=True, wait_s=15)
        assert (again.body, again.system_properties.delivery_attempt) == (b"a", 2)
        # This one falls silent, and is forgotten.
        await cluster.sleep(200)
        (third,) = await receive(cluster, client_id="third", auto_renew=True, wait_s=15)
        assert (third.body, third.system_properties.delivery_attempt) == (b"a", 3)

    play(story, proxies=["p1"])


def test_another_invisible_time_makes_another_handle() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("a"))
        (message,) = await receive(cluster, invisible_duration=Duration(seconds=10))
        old = message.system_properties.receipt_handle
        request = ChangeInvisibleDurationRequest(
            group=READERS, topic=NAMED, receipt_handle=old, invisible_duration=Duration(seconds=40)
        )
        changed = await cluster.call("p1", "ChangeInvisibleDuration", request, ChangeInvisibleDurationResponse)
        assert changed.status.code == Code.OK and changed.receipt_handle != old
        assert await acknowledge(cluster, message) == [Code.INVALID_RECEIPT_HANDLE]
        assert await receive(cluster, invisible_duration=Duration(seconds=10), wait_s=15) == []
        message.system_properties.receipt_handle = changed.receipt_handle
        assert await acknowledge(cluster, message) == [Code.OK]

    play(story, proxies=["p1"])


def test_receiving_by_tags_passes_over_the_others() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("a", tag="x"), letter("b", tag="y"), letter("c", tag="z"))
        by_tags = FilterExpression(expression="x || z")
        assert bodies(await receive(cluster, wanted=by_tags, invisible_duration=Duration(seconds=10))) == [b"a", b"c"]

    play(story, proxies=["p1"])


def test_what_cannot_be_received_or_acknowledged_is_refused_with_its_code() -> None:
    async def story(cluster: Cluster) -> None:
        async def code(method: str, request: object, answer: type) -> int:
            return (await cluster.calls("p1", method, request, answer))[0].status.code  # type: ignore[arg-type]

        asked = ReceiveMessageRequest(group=READERS, message_queue=queue(-1), invisible_duration=Duration(seconds=1))
        assert await code("ReceiveMessage", asked, ReceiveMessageResponse) == Code.ILLEGAL_INVISIBLE_TIME
        asked = ReceiveMessageRequest(message_queue=queue(-1), auto_renew=True)
        assert await code("ReceiveMessage", asked, ReceiveMessageResponse) == Code.ILLEGAL_CONSUMER_GROUP
        asked = ReceiveMessageRequest(group=READERS, auto_renew=True)
        assert await code("ReceiveMessage", asked, ReceiveMessageResponse) == Code.BAD_REQUEST
        acks = AckMessageRequest(group=READERS, topic=NAMED)
        assert await code("AckMessage", acks, AckMessageResponse) == Code.BAD_REQUEST
        for handle in ("", "x", "1 2 3 4 0 broker-a 0 " + "9" * 30):
            acks = AckMessageRequest(group=READERS, topic=NAMED, entries=[AckMessageEntry(receipt_handle=handle)])
            assert await code("AckMessage", acks, AckMessageResponse) == Code.INVALID_RECEIPT_HANDLE

    play(story, proxies=["p1"])


def test_a_group_that_is_set_to_consume_in_order_receives_so_whatever_its_clients_say():
    async def story(cluster: Cluster) -> None:
        group = ConsumerGroup(name="readers", consumes_in_order=True)
        command = RemotingCommand.request(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(group.as_json()).encode()
        )
        assert await cluster.ask("b1", command) == "SUCCESS"
        for body in "abc":
            await send(cluster, letter(body))
        for client_id, name in (("client-1", "readers"), ("client-2", "readers"), ("client-3", "others")):
            stream = await cluster.grpc.open("p1:8081", f"{SERVICE}Telemetry", {"x-mq-client-id": client_id})
            wanted = Subscription(group=Resource(name=name), subscriptions=[SubscriptionEntry(topic=NAMED)])
            await stream.send(TelemetryCommand(settings=Settings(subscription=wanted)).encode())
            told = TelemetryCommand.decode(await stream.receive())
            assert told.settings.subscription.fifo is (name == "readers")
        first = await receive(cluster, batch_size=2)
        assert [message.body for message in first] == [b"a", b"b"]
        assert await receive(cluster, client_id="client-2") == []
        assert await acknowledge(cluster, *first) == [Code.OK] * 2
        assert [message.body for message in await receive(cluster, client_id="client-2")] == [b"c"]

    play(story, proxies=["p1"])
