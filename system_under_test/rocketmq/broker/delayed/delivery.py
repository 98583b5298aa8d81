"""Writes messages that have waited to their own topics, at the master: safe as if a client had sent them."""

from __future__ import annotations

from dataclasses import replace

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.putting import Puts
from system_under_test.rocketmq.topic import MAX_TOPICS, TopicConfig, is_internal_topic
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.message import Message, MessageInvalid, decode_message
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.new_message import NewMessage


class Deliveries:
    def __init__(self, broker: BrokerContext, puts: Puts) -> None:
        self._host, self._store, self._tables = broker.host, broker.store, broker.tables
        self._puts = puts

    def is_void(self, waited: Message, due: NewMessage) -> bool:
        """Whether the topic that it is for was deleted after it was sent."""
        return waited.physical_offset < self._store.forgotten_topics.get(due.topic, 0)

    def readable(self, due: NewMessage) -> NewMessage:
        """In a queue that its topic has for readers: it may have had more when the message was sent."""
        topic = self._tables.topics.get(due.topic)
        if topic is None or due.queue_id < topic.read_queues:
            return due
        return replace(due, queue_id=due.queue_id % topic.read_queues)

    async def attempt(self, mastership: AnyMastership, waited: Message, due: NewMessage) -> int | None:
        """Write `due`, which is what comes of `waited`, and wait until it is confirmed.

        The copy's end in the log; 0 where there is nothing to write, for its topic was deleted meanwhile or the log
        could never take it; None if it was refused for now, or the role was lost.
        """
        if self.is_void(waited, due):
            self._host.log("undelivered", topic=due.topic, offset=waited.physical_offset, reason="topic deleted")
            return 0
        try:
            await self.have_topic(mastership, due)
            if mastership.ended:
                return None
            self._host.reached("about-to-deliver")
            pending = self._puts.put(mastership, self.readable(due))
        except (RemotingError, DiskFull) as error:
            if isinstance(error, RemotingError) and error.code == ResponseCode.MESSAGE_ILLEGAL:
                # It will never be taken: it stays where it waited, and those behind it have their turn.
                self._host.log("undelivered", topic=due.topic, offset=waited.physical_offset, reason=error.remark)
                return 0
            self._host.reached("delivery-refused")
            return None
        return pending.put.end_offset if await self._puts.confirmed(pending) else None

    async def have_topic(self, mastership: AnyMastership, due: NewMessage) -> None:
        """A topic that the last master made, and nobody copied, may have messages that wait.

        Raises DiskFull, RemotingError (MESSAGE_ILLEGAL) where there can be no such topic.
        """
        topics = self._tables.topics
        if is_internal_topic(due.topic):
            return
        if due.topic not in topics.entries and len(topics.entries) < MAX_TOPICS:
            try:
                topic = TopicConfig.of(due.topic, due.queue_id + 1)
            except ValueError as error:
                raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"no topic: {error}") from error
            await topics.put({topic.name: topic}, mastership.master_epoch)


def read_waiting(store: MessageStore, topic: str, queue_id: int, offset: int, count: int) -> tuple[list[Message], int]:
    """The messages of a queue from `offset` on, and the offset of the first: a later one where files have expired.

    Raises StorageCorrupt for one that is harmed: its replica must not be the one that passes it over.
    """
    result = store.get_messages(topic, queue_id, offset, count)
    if offset < result.min_offset:
        result = store.get_messages(topic, queue_id, result.min_offset, count)
    try:
        return [decode_message(data, 0) for data in result.messages], max(offset, result.min_offset)
    except MessageInvalid as error:
        raise StorageCorrupt(f"{topic}, queue {queue_id}, from {offset} on: {error}") from error
