"""A client that pops messages: from any queue of a topic, on one broker group after the other, without rebalancing.

As with `MessageClient`, one call is at most one request that can take effect, and every failure is a ClientError that
says whether it may have. A pop of which no answer came may have made messages invisible: they come again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.filter.subscription import TAG
from system_under_test.rocketmq.pop_protocol import (
    ANY_QUEUE,
    MAX_POPPED,
    ChangedInvisibleTime,
    HandleRequest,
    InitMode,
    PopAnswer,
    PopRequest,
    ReceiptHandle,
    encode_batch_ack,
)
from system_under_test.runtime.host import Host
from system_under_test.storage.message import MessageInvalid, decode_message

_POPPED = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.POLLING_TIMEOUT,
        ResponseCode.POLLING_FULL,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoppedMessage:
    """One delivery of a message. To acknowledge it, or to change its invisible time, takes its `handle`."""

    topic: str
    """The one that was popped from."""
    body: bytes
    properties: dict[str, str]
    reconsume_times: int
    """How often it came before and was not acknowledged."""
    handle: ReceiptHandle
    physical_offset: int
    born_timestamp_ms: int
    store_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PopResult:
    """`broker` is the address that answered; `rest` is how many more messages there are at least."""

    messages: tuple[PoppedMessage, ...]
    rest: int
    broker: str


class PopClient:
    """Pops for one group of consumers through a client for messages, which finds routes and is closed by its owner."""

    def __init__(self, host: Host, client: MessageClient, group: str) -> None:
        self._host = host
        self._client = client
        self._group = group
        self._turn = 0

    async def pop(
        self,
        topic: str,
        invisible_ms: int,
        *,
        max_count: int = MAX_POPPED,
        queue_id: int = ANY_QUEUE,
        poll_ms: int = 0,
        init_mode: InitMode = InitMode.MIN,
        expression: str = "*",
        expression_type: str = TAG,
        is_ordered: bool = False,
        attempt_id: str = "",
        broker_name: str | None = None,
    ) -> PopResult:
        """At most `max_count` messages from one broker group: the named one, or each in its turn. In order: only from
        queues of which nobody has anything, what was not acknowledged first, and all of that."""
        request = PopRequest(
            topic=topic,
            consumer_group=self._group,
            invisible_ms=invisible_ms,
            queue_id=queue_id,
            max_count=max_count,
            poll_ms=poll_ms,
            born_ms=self._host.clock.wall_ns() // 1_000_000,
            init_mode=init_mode,
            expression=expression,
            expression_type=expression_type,
            is_ordered=is_ordered,
            attempt_id=attempt_id,
        )
        name = await self._next_group(topic) if broker_name is None else broker_name
        broker, response = await self._client.request(
            topic, request.encode(), broker_name=name, expected=_POPPED, waits_s=poll_ms / 1000
        )
        if response.code != ResponseCode.SUCCESS:
            return PopResult(messages=(), rest=0, broker=broker)
        try:
            answer = PopAnswer.decode(response)
            messages = _messages(topic, answer, name)
        except (RemotingError, MessageInvalid, ValueError) as error:
            raise ClientError("outcome-unknown", False, f"malformed answer: {error}", broker) from error
        return PopResult(messages=messages, rest=answer.rest, broker=broker)

    async def ack(self, message: PoppedMessage) -> str:
        """It does not come again. Raises ClientError `not-held`, definite, where this delivery holds it no more."""
        handle = message.handle
        request = HandleRequest(
            topic=handle.topic(self._group, message.topic), consumer_group=self._group, handle=handle
        )
        broker, _ = await self._client.request(message.topic, request.encode(), broker_name=handle.broker_name)
        return broker

    async def ack_all(self, messages: Sequence[PoppedMessage]) -> None:
        """Of one topic; one request for each broker group, the first that fails ends it."""
        groups = dict.fromkeys(message.handle.broker_name for message in messages)
        for name in groups:
            handles = [message.handle for message in messages if message.handle.broker_name == name]
            topic = messages[0].topic
            await self._client.request(topic, encode_batch_ack(self._group, topic, handles), broker_name=name)

    async def change_invisible_time(self, message: PoppedMessage, invisible_ms: int) -> PoppedMessage:
        """The same message with the handle that counts from now on. Raises ClientError as `ack` does."""
        handle = message.handle
        request = HandleRequest(
            topic=handle.topic(self._group, message.topic),
            consumer_group=self._group,
            handle=handle,
            invisible_ms=invisible_ms,
        )
        broker, response = await self._client.request(message.topic, request.encode(), broker_name=handle.broker_name)
        try:
            return replace(message, handle=ChangedInvisibleTime.decode(response).of(handle))
        except RemotingError as error:
            raise ClientError("outcome-unknown", False, f"malformed answer: {error}", broker) from error

    async def _next_group(self, topic: str) -> str:
        groups = [group.broker_name for group in (await self._client.route(topic)).groups]
        self._turn += 1
        if not groups:
            raise ClientError("no-route", True, f"{topic} lies nowhere")
        return groups[self._turn % len(groups)]


def _messages(topic: str, answer: PopAnswer, broker_name: str) -> tuple[PoppedMessage, ...]:
    """Raises MessageInvalid, ValueError."""
    messages: list[PoppedMessage] = []
    position = 0
    counts = {
        (queue.queue_id, offset): times
        for queue in answer.queues
        for offset, times in zip(queue.offsets, queue.times, strict=False)
    }
    for handle in answer.handles(broker_name):
        message = decode_message(answer.data, position)
        if message.queue_offset != handle.offset or message.queue_id != handle.queue_id:
            raise ValueError(f"{handle} came with a message of {message.queue_id}/{message.queue_offset}")
        position += message.size
        messages.append(
            PoppedMessage(
                topic=topic,
                body=message.body,
                properties=dict(message.properties),
                reconsume_times=counts.get((handle.queue_id, handle.offset), message.reconsume_times),
                handle=handle,
                physical_offset=message.physical_offset,
                born_timestamp_ms=message.born_timestamp_ms,
                store_timestamp_ms=message.store_timestamp_ms,
            )
        )
    if position != len(answer.data):
        raise ValueError("more messages than receipt handles")
    return tuple(messages)
