"""SendMessage: each message of a call goes to a queue of its topic, with its outcome told by itself. RecallMessage: one
that was to be delivered later is taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from zlib import crc32

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.message_id import parse_message_id
from system_under_test.rocketmq.message_protocol import SendAnswer, SendRequest
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.messages import (
    DELIVER_AT_MS,
    SHARDING_KEY,
    TAKEN_BACK,
    UNIQUE_KEY,
    TransactionId,
    properties_of,
    sys_flag_of,
    topic_of,
)
from system_under_test.rocketmq.proxy.refusals import OK, Refused, common_status, refused_by_broker
from system_under_test.rocketmq.proxy.v2 import (
    Code,
    MessageType,
    RecallMessageRequest,
    RecallMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
    SystemProperties,
    UserMessage,
)
from system_under_test.rocketmq.recall_handle import RecallHandle
from system_under_test.rocketmq.topic import WRITE
from system_under_test.runtime.host import Host
from system_under_test.storage.message import encode_properties

MAX_MESSAGES = 128
"""How many messages one call may have."""


class Sending:
    def __init__(self, host: Host, config: ProxyConfig, brokers: Brokers) -> None:
        self._host = host
        self._config = config
        self._brokers = brokers
        self._turn = host.random.randrange(1 << 16)

    async def send(self, request: SendMessageRequest) -> SendMessageResponse:
        """Raises Refused for a call without messages, or with too many."""
        if not 0 < len(request.messages) <= MAX_MESSAGES:
            raise Refused(Code.BAD_REQUEST, f"a call has 1 to {MAX_MESSAGES} messages, not {len(request.messages)}")
        # Of one message group they go one after the other, or a later one could overtake.
        if any((message.system_properties or SystemProperties()).message_group for message in request.messages):
            entries = [await self._entry(message) for message in request.messages]
        else:
            entries = list(await asyncio.gather(*map(self._entry, request.messages)))
        return SendMessageResponse(status=common_status([entry.status for entry in entries]), entries=entries)

    async def _entry(self, message: UserMessage) -> SendResultEntry:
        try:
            return await self._sent(message)
        except Refused as refused:
            return SendResultEntry(status=refused.status)

    async def _sent(self, message: UserMessage) -> SendResultEntry:
        """Raises Refused."""
        topic = topic_of(message.topic)
        properties = properties_of(message, topic, self._config)
        system = message.system_properties or SystemProperties()
        broker_name, queue_id = self._queue(await self._brokers.route(topic), properties.get(SHARDING_KEY))
        born_ms = self._host.clock.wall_ns() // 1_000_000
        if system.born_timestamp is not None:
            born_ms = system.born_timestamp.seconds * 1_000 + system.born_timestamp.nanos // 1_000_000
        request = SendRequest(
            topic=topic,
            queue_id=queue_id,
            body=message.body,
            born_timestamp_ms=born_ms,
            producer_group=topic,
            properties=encode_properties(properties).decode(),
            sys_flag=sys_flag_of(system),
        )
        response = await self._brokers.ask_master(topic, broker_name, request.encode())
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        try:
            answer = SendAnswer.decode(response)
        except RemotingError as error:
            raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error.remark}") from error
        is_half = system.message_type == MessageType.TRANSACTION
        return SendResultEntry(
            status=OK,
            message_id=properties[UNIQUE_KEY],
            transaction_id=_transaction_id(broker_name, answer) if is_half else "",
            offset=answer.queue_offset,
            recall_handle=_recall_handle(topic, broker_name, properties),
        )

    async def recall(self, request: RecallMessageRequest) -> RecallMessageResponse:
        """By a message that is due together with it, at the broker that has it. Raises Refused."""
        topic = topic_of(request.topic)
        try:
            handle = RecallHandle.decode(request.recall_handle)
        except ValueError as error:
            raise Refused(Code.BAD_REQUEST, str(error)) from error
        if handle.topic != topic:
            raise Refused(Code.BAD_REQUEST, f"the recall handle is of topic {handle.topic!r}, not of {topic!r}")
        properties = {
            UNIQUE_KEY: _text(handle.unique_key),
            DELIVER_AT_MS: str(handle.due_ms),
            TAKEN_BACK: _text(handle.unique_key),
        }
        taking_back = SendRequest(
            topic=topic,
            queue_id=0,
            body=b"0",
            born_timestamp_ms=self._host.clock.wall_ns() // 1_000_000,
            producer_group=topic,
            properties=encode_properties(properties).decode(),
        )
        response = await self._brokers.ask_master(topic, handle.broker_name, taking_back.encode())
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        return RecallMessageResponse(status=OK, message_id=handle.unique_key)

    def _queue(self, route: TopicRoute, sharding_key: str | None) -> tuple[str, int]:
        """(broker's name, queue): by turns, or that of the message group. Raises Refused where none takes messages."""
        queues = [
            (group.broker_name, queue_id)
            for group in route.groups
            if group.permission & WRITE
            for queue_id in range(group.write_queues)
        ]
        if not queues:
            raise Refused(Code.FORBIDDEN, "no queue of the topic takes messages")
        if sharding_key is not None:
            return queues[crc32(sharding_key.encode()) % len(queues)]
        served = {group.broker_name for group in route.groups if group.master is not None}
        self._turn += 1
        for step in range(len(queues)):
            queue = queues[(self._turn + step) % len(queues)]
            if queue[0] in served:
                self._turn += step
                return queue
        raise Refused(Code.HA_NOT_AVAILABLE, "no broker of the topic has a master")


def _recall_handle(topic: str, broker_name: str, properties: Mapping[str, str]) -> str:
    """Empty for a message that is not delayed, or whose id has what separates the parts of a handle."""
    due, unique_key = properties.get(DELIVER_AT_MS), properties[UNIQUE_KEY]
    if due is None or int(due) < 0 or " " in unique_key:
        return ""
    return RecallHandle(topic=topic, broker_name=broker_name, due_ms=int(due), unique_key=unique_key).encode()


def _text(text: str) -> str:
    """Control characters would end a property and begin another. Raises Refused."""
    if not text.isprintable():
        raise Refused(Code.BAD_REQUEST, "the recall handle names no message id")
    return text


def _transaction_id(broker_name: str, answer: SendAnswer) -> str:
    """Raises Refused where the broker's answer does not say where the half message is."""
    try:
        _, log_offset = parse_message_id(answer.message_id)
    except ValueError as error:
        raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error}") from error
    return TransactionId(broker_name, log_offset, answer.queue_offset).encode()
