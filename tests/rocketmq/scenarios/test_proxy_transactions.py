"""Transactions through the proxy, and messages that a client gives up for dead."""

from __future__ import annotations

import pytest

from system_under_test.grpc.client import OpenCall
from system_under_test.rocketmq.consumer_protocol import dead_letter_topic
from system_under_test.rocketmq.proxy.v2 import (
    ClientType,
    Code,
    Duration,
    EndTransactionRequest,
    EndTransactionResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    MessageType,
    Publishing,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    TelemetryCommand,
    TransactionResolution,
    TransactionSource,
)
from tests.rocketmq.scenarios.broker_cluster import Cluster, play
from tests.rocketmq.scenarios.proxy_calls import NAMED, letter
from tests.rocketmq.scenarios.test_proxy_receiving import READERS, receive, send


async def half(cluster: Cluster, body: str) -> str:
    """The id of the transaction that begins with this message."""
    message = letter(body, message_type=MessageType.TRANSACTION)
    sent = await cluster.call("p1", "SendMessage", SendMessageRequest(messages=[message]), SendMessageResponse)
    assert sent.status.code == Code.OK
    return sent.entries[0].transaction_id


async def end(cluster: Cluster, body: str, transaction_id: str, resolution: int, source: int = 0) -> int:
    request = EndTransactionRequest(
        topic=NAMED, message_id=f"id-{body}", transaction_id=transaction_id, resolution=resolution, source=source
    )
    return (await cluster.call("p1", "EndTransaction", request, EndTransactionResponse)).status.code


async def producer(cluster: Cluster) -> OpenCall:
    stream = await cluster.grpc.open(
        "p1:8081", "/apache.rocketmq.v2.MessagingService/Telemetry", {"x-mq-client-id": "client-1"}
    )
    settings = Settings(client_type=ClientType.PRODUCER, publishing=Publishing(topics=[NAMED]))
    await stream.send(TelemetryCommand(settings=settings).encode())
    assert TelemetryCommand.decode(await stream.receive()).status.code == Code.OK
    return stream


def test_a_transaction_is_visible_once_it_is_committed_and_never_once_it_is_rolled_back() -> None:
    async def story(cluster: Cluster) -> None:
        good, bad = await half(cluster, "good"), await half(cluster, "bad")
        await cluster.sleep(1)
        assert await cluster.read("b1") == []
        assert await end(cluster, "bad", bad, TransactionResolution.ROLLBACK) == Code.OK
        assert await end(cluster, "good", good, TransactionResolution.COMMIT) == Code.OK
        await cluster.sleep(1)
        assert await cluster.read("b1") == ["good"]
        assert await end(cluster, "good", good, TransactionResolution.COMMIT) != Code.OK

    play(story, proxies=["p1"])


@pytest.mark.parametrize(("resolution", "messages"), [("COMMIT", ["forgotten"]), ("ROLLBACK", [])])
def test_of_a_transaction_that_nobody_ends_a_producer_is_asked(resolution: str, messages: list[str]) -> None:
    async def story(cluster: Cluster) -> None:
        stream = await producer(cluster)
        begun = await half(cluster, "forgotten")
        data = await cluster.within(120, stream.receive())
        question = TelemetryCommand.decode(data).recover_orphaned_transaction_command
        assert question is not None and question.transaction_id == begun
        assert (question.message.body, question.message.system_properties.message_id) == (b"forgotten", "id-forgotten")
        ended = await end(
            cluster,
            "forgotten",
            question.transaction_id,
            TransactionResolution[resolution],
            TransactionSource.SOURCE_SERVER_CHECK,
        )
        assert ended == Code.OK
        await cluster.sleep(2)
        assert await cluster.read("b1") == messages

    play(story, proxies=["p1"])


def test_a_transaction_begun_at_one_master_ends_at_the_next() -> None:
    async def story(cluster: Cluster) -> None:
        begun = await half(cluster, "a")
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.sleep(6)
        assert await end(cluster, "a", begun, TransactionResolution.COMMIT) == Code.OK
        await cluster.sleep(1)
        assert await cluster.read("b2") == ["a"]

    play(story, proxies=["p1"])


def test_what_is_no_transaction_is_refused() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("", "broker-a", "broker-a:1", "broker-a:x:1", "broker-a:1:-1", "x" * 300 + ":1:1"):
            assert await end(cluster, "a", name, TransactionResolution.COMMIT) == Code.INVALID_TRANSACTION_ID
        assert await end(cluster, "a", "broker-a:0:0", TransactionResolution.COMMIT) != Code.OK
        assert await end(cluster, "a", "broker-a:0:0", 0) == Code.BAD_REQUEST

    play(story, proxies=["p1"])


def test_a_message_that_is_given_up_is_a_dead_letter_and_does_not_come_again() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("poison"))
        (message,) = await receive(cluster, invisible_duration=Duration(seconds=10))
        request = ForwardMessageToDeadLetterQueueRequest(
            group=READERS,
            topic=NAMED,
            receipt_handle=message.system_properties.receipt_handle,
            message_id="id-poison",
            delivery_attempt=1,
            max_delivery_attempts=16,
        )
        method, answer = "ForwardMessageToDeadLetterQueue", ForwardMessageToDeadLetterQueueResponse
        assert (await cluster.call("p1", method, request, answer)).status.code == Code.OK
        assert await cluster.read("b1", dead_letter_topic("readers")) == ["poison"]
        assert await receive(cluster, invisible_duration=Duration(seconds=10), wait_s=15) == []

    play(story, proxies=["p1"], autoCreateSubscriptionGroup=True)
