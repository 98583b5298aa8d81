"""Sends to and reads from queues of static topics, wherever their segments lie.

What groups say of a topic is asked once, and again whenever a request was refused or failed: each group refuses what
lies on another one, so an old mapping leads to a refusal and never to a wrong answer.
"""

from __future__ import annotations

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.client.message_client import MessageClient, PullResult, SendResult
from system_under_test.rocketmq.client.static_topic_client import StaticTopicClient
from system_under_test.rocketmq.message_batch import BatchedMessage
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue
from system_under_test.rocketmq.static_topic.mapping import StaticTopic


class LogicQueueClient:
    """Queues are named by their numbers in the whole topic, offsets are those of the whole queue."""

    def __init__(self, messages: MessageClient, admin: AdminClient) -> None:
        self._messages = messages
        self._topics = StaticTopicClient(admin)
        self._cache: dict[str, StaticTopic] = {}

    async def masters(self, topic: str) -> dict[str, str]:
        """Group -> address of its master, of all that have the topic. Raises ClientError."""
        route = await self._messages.route(topic)
        return {group.broker_name: group.master for group in route.groups if group.master is not None}

    async def queue(self, topic: str, queue_id: int) -> LogicQueue:
        """As far as known; asked for if it is not. Raises ClientError."""
        known = self._cache.get(topic)
        if known is None:
            known = (await self._topics.knowledge(await self.masters(topic), topic)).merged()
            if known is None:
                raise self._failed(topic, f"nobody knows a static topic {topic}")
            self._cache[topic] = known
        queue = known.queues.get(queue_id)
        if queue is None:
            raise self._failed(topic, f"nobody knows queue {queue_id} of {topic}")
        return queue

    async def send(self, topic: str, queue_id: int, body: bytes, *, broker_name: str | None = None) -> SendResult:
        """To the group that leads the queue as far as known, or to the one that is named: others refuse."""
        group = broker_name or await self._leader(topic, queue_id)
        try:
            return await self._messages.send(topic, queue_id, body, broker_name=group)
        except ClientError:
            self.forget(topic)
            raise

    async def send_batch(self, topic: str, queue_id: int, messages: list[BatchedMessage]) -> SendResult:
        leader = await self._leader(topic, queue_id)
        try:
            return await self._messages.send_batch(topic, queue_id, messages, broker_name=leader)
        except ClientError:
            self.forget(topic)
            raise

    async def consume(self, topic: str, queue_id: int, offset: int, max_count: int, group: str) -> PullResult:
        """From the group that has the segment of this offset, as `MessageClient.consume` does."""
        name = (await self.queue(topic, queue_id)).at(offset).broker_name
        try:
            return await self._messages.consume(topic, queue_id, offset, max_count, group, broker_name=name)
        except ClientError:
            self.forget(topic)
            raise

    async def query_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The newest segment that the group of consumers has come to says how far it has come; None if none does."""
        queue = await self.queue(topic, queue_id)
        try:
            for name in dict.fromkeys(segment.broker_name for segment in reversed(queue.decided)):
                offset = await self._messages.query_offset(group, topic, queue_id, broker_name=name)
                if offset is not None:
                    return offset
        except ClientError:
            self.forget(topic)
            raise
        return None

    async def update_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        name = (await self.queue(topic, queue_id)).at(offset).broker_name
        try:
            await self._messages.update_offset(group, topic, queue_id, offset, broker_name=name)
        except ClientError:
            self.forget(topic)
            raise

    def forget(self, topic: str) -> None:
        """Ask for its mapping again at the next call."""
        self._cache.pop(topic, None)

    async def _leader(self, topic: str, queue_id: int) -> str:
        leader = (await self.queue(topic, queue_id)).leader
        if leader is None:
            raise self._failed(topic, f"queue {queue_id} of {topic} is being moved")
        return leader

    def _failed(self, topic: str, detail: str) -> ClientError:
        self.forget(topic)
        return ClientError("no-route", True, detail)
