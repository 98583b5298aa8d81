"""Clients that wait take no places from those who work, and what vanished clients had is given back."""

from __future__ import annotations

import asyncio

from system_under_test.grpc.client import GrpcClient, OpenCall
from system_under_test.remoting.server import MAX_RUNNING_HANDLERS
from system_under_test.rocketmq.broker.consuming.pulling import MAX_SUSPENDED_PULLS
from system_under_test.rocketmq.message_protocol import PullRequest
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    ClientType,
    Code,
    Publishing,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    Subscription,
    SubscriptionEntry,
    TelemetryCommand,
)
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.proxy_calls import NAMED, letter, queue
from tests.rocketmq.scenarios.test_proxy_receiving import ALL, READERS, bodies, receive, send

OK = "SUCCESS"
MOST_CALLS = 200
"""That a proxy answers at one time."""


def waiting_pull(poll_ms: int = 25_000) -> PullRequest:
    return PullRequest(
        topic=TOPIC, queue_id=0, queue_offset=0, max_count=1, consumer_group="g", suspend_timeout_ms=poll_ms
    )


def test_pulls_that_wait_keep_no_send_out():
    async def story(cluster: Cluster) -> None:
        waiting = [
            cluster.begin(cluster.ask("b1", waiting_pull(poll_ms=4_000).encode()))
            for _ in range(max(MAX_RUNNING_HANDLERS, MAX_SUSPENDED_PULLS))
        ]
        await cluster.sleep(1)
        assert await cluster.send("b1", "a") == [OK]
        assert set(await asyncio.gather(*waiting)) == {OK}

    play(story, brokers=1)


def test_whoever_works_has_a_place_and_is_refused_where_all_are_taken():
    async def story(cluster: Cluster) -> None:
        waiting = []
        for _ in range(20):
            waiting.append(cluster.begin(cluster.ask("b1", waiting_pull(poll_ms=4_000).encode())))
            await cluster.sleep(0.01)
        await cluster.slow_down(("b1", "b2"), delay_ms=200)
        sent = [cluster.begin(_sent(cluster)) for _ in range(5)]
        codes = await asyncio.gather(*sent)
        assert sorted(codes) == [OK, OK, "SYSTEM_BUSY", "SYSTEM_BUSY", "SYSTEM_BUSY"]
        assert set(await asyncio.gather(*waiting)) == {OK}
        assert await cluster.send("b1", "a") == [OK]

    play(story, serverAsyncSemaphoreValue=2)


async def _sent(cluster: Cluster) -> str:
    return (await cluster.send("b1", "a"))[0]


async def converse(client: GrpcClient, client_id: str, settings: Settings) -> OpenCall:
    stream = await client.open("p1:8081", f"{SERVICE}Telemetry", {"x-mq-client-id": client_id})
    await stream.send(TelemetryCommand(settings=settings).encode())
    answer = TelemetryCommand.decode(await stream.receive() or b"")
    assert answer.status is not None and answer.status.code == Code.OK
    return stream


def test_a_proxy_takes_more_clients_than_it_answers_at_one_time():
    async def story(cluster: Cluster) -> None:
        producer = Settings(client_type=ClientType.PRODUCER, publishing=Publishing(topics=[NAMED]))
        streams = []
        for number in range(MOST_CALLS + 1):
            client = GrpcClient(cluster.host(f"many-{number}"), 5.0)
            streams.append(await converse(client, str(number), producer))
        await send(cluster, letter("a"))

    play(story, brokers=1, proxies=["p1"], of_proxies={"grpcThreadPoolQueueCapacity": MOST_CALLS})


def test_what_a_client_held_that_vanished_without_a_word_comes_again_and_its_connection_is_ended():
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("a"))
        gone = GrpcClient(cluster.host("gone"), 5.0)
        wanted = Subscription(group=READERS, subscriptions=[SubscriptionEntry(topic=NAMED)])
        await converse(gone, "gone", Settings(client_type=ClientType.PUSH_CONSUMER, subscription=wanted))
        asked = ReceiveMessageRequest(
            group=READERS, message_queue=queue(-1), filter_expression=ALL, batch_size=32, auto_renew=True
        )
        answers = await gone.call_for_all(
            "p1:8081", f"{SERVICE}ReceiveMessage", asked.encode(), 60.0, {"x-mq-client-id": "gone"}
        )
        assert bodies([each.message for each in map(ReceiveMessageResponse.decode, answers) if each.message]) == [b"a"]
        await cluster.cut(("gone", "p1"))
        await cluster.sleep(100)
        assert await receive(cluster, auto_renew=True) == [], "it may be cut off for a moment"
        await cluster.sleep(40)
        assert bodies(await receive(cluster, auto_renew=True, wait_s=10)) == [b"a"]
        assert [each["remote"].partition(":")[0] for each in cluster.reported("p1", "grpc_connection_ended")] == [
            "gone"
        ]

    play(story, brokers=1, proxies=["p1"])


def test_what_a_living_client_holds_is_renewed_however_much_it_is_and_however_far_its_broker():
    async def story(cluster: Cluster) -> None:
        count = 600
        for first in range(0, count, 100):
            letters = [letter(f"{number}") for number in range(first, first + 100)]
            answer = await cluster.call("p1", "SendMessage", SendMessageRequest(messages=letters), SendMessageResponse)
            assert answer.status.code == Code.OK
        await cluster.slow_down(("p1", "b1"), delay_ms=100)
        held = []
        while len(held) < count:
            held += await receive(cluster, auto_renew=True)
        for _ in range(10):
            await cluster.sleep(10)
            assert await receive(cluster, auto_renew=True) == []

    play(story, brokers=1, proxies=["p1"])
