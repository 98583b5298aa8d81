"""SendMessage: each message of a call goes to a queue of its topic, with its outcome told by itself."""

from __future__ import annotations

import asyncio
from zlib import crc32

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.message_id import parse_message_id
from system_under_test.rocketmq.message_protocol import SendAnswer, SendRequest
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.messages import (
    SHARDING_KEY,
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
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
    SystemProperties,
    UserMessage,
)
from system_under_test.rocketmq.topic import WRITE
from system_under_test.runtime.host import Host
from system_under_test.storage.message import encode_properties

MAX_MESSAGES = 128
"""Of one call."""


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
        )

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


def _transaction_id(broker_name: str, answer: SendAnswer) -> str:
    """Raises Refused where the broker's answer does not say where the half message is."""
    try:
        _, log_offset = parse_message_id(answer.message_id)
    except ValueError as error:
        raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error}") from error
    return TransactionId(broker_name, log_offset, answer.queue_offset).encode()
