"""Messages that a group could not consume come again, later each time, and in the end become dead letters.

A consumer sends back (CONSUMER_SEND_MSG_BACK) what it failed to consume. The broker writes it once more, with one more
to its count of times, to the group's retry topic, which all of the group's members read; after as many times as the
group is patient it goes to the group's dead-letter topic, which nobody reads by himself. The answer says that it is as
safe there as what is sent. Only then may the consumer commit the offset of what it has sent back.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.retries import Return, WhatBecomes
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.delayed.delay_levels import at_level
from system_under_test.rocketmq.broker.delayed.delay_placement import WaitingRooms
from system_under_test.rocketmq.broker.putting import Pending, Puts
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.consumer_protocol import (
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    SendBackRequest,
)
from system_under_test.runtime.host import DiskError
from system_under_test.storage.message import Message, MessageInvalid, decode_message
from system_under_test.storage.new_message import NewMessage


class ReturnedMessages:
    """CONSUMER_SEND_MSG_BACK."""

    def __init__(
        self,
        broker: BrokerContext,
        administration: Administration,
        puts: Puts,
        waiting: WaitingRooms,
        what_becomes_of: WhatBecomes,
    ) -> None:
        self._host, self._store, self._tables, self._ha = broker.host, broker.store, broker.tables, broker.ha
        self._administration = administration
        self._puts = puts
        self._waiting = waiting
        self._what_becomes_of = what_becomes_of

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back}

    async def _send_back(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = SendBackRequest.decode(command)
        group = self._tables.group(request.group)
        if group is None:
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {request.group!r} does not exist")
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        message = self._read(request.offset)
        becomes = self._what_becomes_of(message, request, group)
        if becomes is None or becomes.queues <= 0:
            return RemotingCommand.response(ResponseCode.SUCCESS)
        await self._administration.make_topic_of_group(becomes.topic, becomes.queues)
        if mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        queue_id = self._host.random.randrange(self._queues(becomes))
        again = returned(message, topic=becomes.topic, queue_id=queue_id, times=becomes.reconsume_times)
        pending = self._puts.put(mastership, self._waiting.place(at_level(again, becomes.delay_level)))
        code, remark = await self._taken_back(pending)
        return RemotingCommand.response(code, remark=remark)

    def _queues(self, becomes: Return) -> int:
        """From so many queues of the topic it may come again."""
        return min(becomes.queues, self._administration.topic(becomes.topic).read_queues)

    async def _taken_back(self, pending: Pending) -> tuple[ResponseCode, str | None]:
        """What the consumer is answered, once that is known: it will not ask for the message again."""
        return await self._puts.acknowledged(pending)

    def _read(self, offset: int) -> Message:
        """Raises RemotingError where no message begins there that consumers have been shown."""
        try:
            found = self._store.lookups.at(offset)
            if found is not None:
                return decode_message(found, 0)
        except (DiskError, MessageInvalid) as error:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, f"message {offset} cannot be read: {error}") from error
        raise RemotingError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset}")


def returned(message: Message, *, topic: str, queue_id: int, times: int) -> NewMessage:
    """As it is written to come again: with where it came from, and how often it came."""
    origin = message.properties.get(ORIGIN_MESSAGE_ID) or f"{message.physical_offset:032X}"
    first_topic = message.properties.get(RETRY_TOPIC) or message.topic
    properties = {**message.properties, RETRY_TOPIC: first_topic, ORIGIN_MESSAGE_ID: origin}
    return replace(
        NewMessage.copy_of(message, topic=topic, queue_id=queue_id, properties=properties), reconsume_times=times
    )
