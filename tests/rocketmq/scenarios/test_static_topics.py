"""Moves of a queue of a static topic, step by step, as one group of brokers lives them, failovers in the midst."""

from __future__ import annotations

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.client.admin_client import AdminClient, AdminRefusal
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.static_topic.mapping import StaticTopic, first_queues
from system_under_test.rocketmq.static_topic.remapping import Freeze, Open, next_step
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, GROUP, Cluster, play

TOPIC = "orders"
OTHER = "broker-b"
"""The group that the queue moves to is not there: what it would say is told by the test."""


class Story:
    """An administrator and a client; the queue is the topic's only one."""

    def __init__(self, cluster: Cluster) -> None:
        host = cluster.host("administrator")
        self.admin = AdminClient(host, 3.0)
        self.client = MessageClient(host, [f"{name}:9876" for name in CONTROLLERS], 3.0)
        self.topic = StaticTopic(name=TOPIC, total_queues=1, queues=first_queues([GROUP]))

    async def tell(self, broker: str, change: StaticTopic) -> int:
        try:
            await self.admin.change_static_topic(f"{broker}:10911", GROUP, change)
        except AdminRefusal as refusal:
            return refusal.response_code
        return ResponseCode.SUCCESS

    async def read_topic(self, broker: str) -> StaticTopic:
        topic = await self.admin.static_topic(f"{broker}:10911", TOPIC)
        assert topic is not None
        return topic

    async def send(self, body: bytes) -> int | str:
        """The offset that it got, or the error."""
        self.client.forget_routes()
        try:
            return (await self.client.send(TOPIC, 0, body)).queue_offset
        except ClientError as error:
            return error.code

    async def read(self, broker: str, offset: int) -> tuple[list[tuple[int, bytes]], int]:
        pulled = await self.client.pull(TOPIC, 0, offset, 10, "readers", f"{broker}:10911")
        return [*pulled.messages], pulled.next_offset

    def close(self) -> None:
        self.client.close()
        self.admin.close()


def freezing(topic: StaticTopic, target: str = OTHER) -> StaticTopic:
    step = next_step({GROUP: topic.queues[0]}, 0, target, 1)
    assert isinstance(step, Freeze)
    return topic.only(0, step.queue)


def opening(topic: StaticTopic) -> StaticTopic:
    step = next_step({GROUP: topic.queues[0]}, 0, None, 1)
    assert isinstance(step, Open)
    return topic.only(0, step.queue)


def test_a_queue_is_frozen_and_its_readers_are_led_on() -> None:
    async def story(cluster: Cluster) -> None:
        story = Story(cluster)
        assert await story.tell("b1", story.topic) == ResponseCode.SUCCESS
        await cluster.sleep(1)
        assert [await story.send(b"one"), await story.send(b"two")] == [0, 1]
        assert await story.tell("b1", freezing(story.topic)) == ResponseCode.SUCCESS
        assert await story.send(b"three") == "not-leader"
        assert await story.read("b1", 0) == ([(0, b"one"), (1, b"two")], 2)
        assert await story.read("b1", 2) == ([], 2)  # nobody knows yet where it goes on
        frozen = await story.read_topic("b1")
        assert frozen.queues[0].segments[0].end_offset == 2
        assert await story.tell("b1", opening(frozen)) == ResponseCode.SUCCESS
        assert await story.read("b1", 2) == ([], 10_000)
        story.close()

    play(story)


def test_a_frozen_queue_stays_frozen_under_the_next_master() -> None:
    async def story(cluster: Cluster) -> None:
        story = Story(cluster)
        assert await story.tell("b1", story.topic) == ResponseCode.SUCCESS
        await cluster.sleep(1)
        assert await story.send(b"one") == 0
        assert await story.tell("b1", freezing(story.topic)) == ResponseCode.SUCCESS
        before = await story.read_topic("b1")
        await cluster.kill("b1")
        await cluster.until_master("b2", 60)
        await cluster.sleep(2)
        assert await story.read_topic("b2") == before
        assert await story.send(b"two") == "not-leader"
        # The administrator that goes on asks for the same once more, and then for what comes next.
        assert await story.tell("b2", freezing(story.topic)) == ResponseCode.SUCCESS
        assert await story.tell("b2", opening(before)) == ResponseCode.SUCCESS
        assert await story.read("b2", 1) == ([], 10_000)
        story.close()

    play(story)


def test_an_older_change_and_a_second_successor_are_refused() -> None:
    async def story(cluster: Cluster) -> None:
        story = Story(cluster)
        assert await story.tell("b1", story.topic) == ResponseCode.SUCCESS
        assert await story.tell("b1", freezing(story.topic)) == ResponseCode.SUCCESS
        frozen = await story.read_topic("b1")
        assert await story.tell("b1", freezing(story.topic, "broker-c")) == ResponseCode.INVALID_PARAMETER
        assert await story.tell("b1", story.topic) == ResponseCode.INVALID_PARAMETER
        assert await story.read_topic("b1") == frozen
        story.close()

    play(story)


def test_a_queue_that_comes_back_goes_on_behind_where_it_was() -> None:
    async def story(cluster: Cluster) -> None:
        story = Story(cluster)
        assert await story.tell("b1", story.topic) == ResponseCode.SUCCESS
        await cluster.sleep(1)
        assert await story.send(b"one") == 0
        assert await story.tell("b1", freezing(story.topic)) == ResponseCode.SUCCESS
        assert await story.tell("b1", opening(await story.read_topic("b1"))) == ResponseCode.SUCCESS
        away = (await story.read_topic("b1")).queues[0]
        back = next_step({OTHER: away}, 0, GROUP, 1)
        assert isinstance(back, Freeze) and back.group == OTHER
        frozen = back.queue.frozen_at(5, 1)
        opened = next_step({OTHER: frozen}, 0, None, 1)
        assert isinstance(opened, Open)
        assert await story.tell("b1", story.topic.only(0, opened.queue)) == ResponseCode.SUCCESS
        assert await story.send(b"two") == opened.queue.last.logic_offset
        assert await story.read("b1", opened.queue.last.logic_offset) == ([(20_000, b"two")], 20_001)
        story.close()

    play(story)
