"""Planted bugs that only messages at borders, clients that wait or clients that vanish show."""

from __future__ import annotations

import pytest

from system_under_test.grpc.client import GrpcClient
from system_under_test.rocketmq.broker import admission
from system_under_test.rocketmq.consumer_protocol import SendBackRequest
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    ClientType,
    ReceiveMessageRequest,
    Settings,
    Subscription,
    SubscriptionEntry,
)
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.proxy_calls import NAMED, letter, queue
from tests.rocketmq.scenarios.test_messages_at_borders import LONG, SOON, long_topic, message, stored
from tests.rocketmq.scenarios.test_proxy_receiving import ALL, READERS, receive, send
from tests.rocketmq.scenarios.test_proxy_transactions import producer
from tests.rocketmq.scenarios.test_waiting_and_vanished_clients import converse, waiting_pull

OK = "SUCCESS"


@pytest.mark.parametrize("mutant", [None, "no-room-left"])
def test_a_message_without_room_holds_up_its_level(mutant: str | None):
    async def story(cluster: Cluster) -> None:
        await long_topic(cluster)
        large = len(message(None, LONG, properties={"DELAY": "1"}).body)
        # The largest that can wait: with its topic's longer name it is too large to come out.
        while await cluster.ask("b1", message(b"x" * large, LONG, properties={"DELAY": "1"}).encode()) != OK:
            large -= 1
        assert await cluster.ask("b1", message(b"behind", LONG, properties={"DELAY": "1"}).encode()) == OK
        await cluster.sleep(10)
        came_out = [each.body[-6:] for each in await stored(cluster, LONG)]
        assert came_out == ([b"xxxxxx", b"behind"] if mutant is None else [])

    play(story, mutant=mutant, **SOON)


@pytest.mark.parametrize("mutant", [None, "poison-unguarded"])
def test_a_count_of_times_at_its_greatest_ends_its_master(mutant: str | None):
    async def story(cluster: Cluster) -> None:
        assert await cluster.ask("b1", message(b"often", reconsume_times=2**31 - 1).encode()) == OK
        (first,) = await stored(cluster, TOPIC)
        request = SendBackRequest(offset=first.physical_offset, group="g", delay_level=-1, origin_topic=TOPIC)
        sent_back = cluster.begin(cluster.ask("b1", request.encode()))
        await cluster.sleep(1)
        assert list(cluster.dead()) == ([] if mutant is None else ["b1"])
        sent_back.cancel()

    if mutant is None:
        play(story, brokers=1, **SOON)
    else:
        with pytest.raises(AssertionError):  # a cluster ends well only where no node has died of itself
            play(story, brokers=1, mutant=mutant, **SOON)


@pytest.mark.parametrize("mutant", [None, "poison-unguarded"])
def test_a_question_about_what_nobody_can_read_ends_its_proxy(mutant: str | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "compression_of", lambda _: None)
    seen = []

    async def story(cluster: Cluster) -> None:
        half = message(b"x", properties={"TRAN_MSG": "true"}, sys_flag=1 | 7 << 8, producer_group=TOPIC)
        assert await cluster.ask("b1", half.encode()) == OK
        await producer(cluster)
        await cluster.sleep(15)
        seen.extend(cluster.dead())
        assert not seen

    times = {"transactionTimeOut": 1_000, "transactionCheckInterval": 1_000}
    if mutant is None:
        play(story, brokers=1, proxies=["p1"], **times)
    else:
        with pytest.raises(AssertionError):
            play(story, brokers=1, proxies=["p1"], mutant=mutant, **times)
        assert seen == ["p1"]


@pytest.mark.parametrize("mutant", [None, "waiting-counts"])
def test_pulls_that_wait_keep_a_send_out(mutant: str | None):
    async def story(cluster: Cluster) -> None:
        waiting = []
        for _ in range(4):
            waiting.append(cluster.begin(cluster.ask("b1", waiting_pull(4_000).encode())))
            await cluster.sleep(0.1)
        assert await cluster.send("b1", "a") == [OK if mutant is None else "SYSTEM_BUSY"]
        for each in waiting:
            await each

    play(story, brokers=1, mutant=mutant, serverAsyncSemaphoreValue=4)


@pytest.mark.parametrize("mutant", [None, "stream-keeps-session"])
def test_a_stream_keeps_what_a_vanished_client_held(mutant: str | None):
    async def story(cluster: Cluster) -> None:
        await send(cluster, letter("a"))
        gone = GrpcClient(cluster.host("gone"), 5.0)
        wanted = Subscription(group=READERS, subscriptions=[SubscriptionEntry(topic=NAMED)])
        await converse(gone, "gone", Settings(client_type=ClientType.PUSH_CONSUMER, subscription=wanted))
        asked = ReceiveMessageRequest(
            group=READERS, message_queue=queue(-1), filter_expression=ALL, batch_size=32, auto_renew=True
        )
        await gone.call_for_all("p1:8081", f"{SERVICE}ReceiveMessage", asked.encode(), 60.0, {"x-mq-client-id": "gone"})
        await cluster.sleep(400)
        assert len(await receive(cluster, auto_renew=True, wait_s=10)) == (1 if mutant is None else 0)

    play(story, brokers=1, proxies=["p1"], mutant=mutant)
