"""ReceiveMessage and what a client says of what it received: all by POP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.consumer_protocol import SendBackRequest, one_more
from system_under_test.rocketmq.filter.subscription import SQL92, TAG
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest
from system_under_test.rocketmq.pop_protocol import (
    ANY_QUEUE,
    MAX_POPPED,
    ChangedInvisibleTime,
    HandleRequest,
    PopAnswer,
    PopRequest,
    ReceiptHandle,
)
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.holding import Holding
from system_under_test.rocketmq.proxy.messages import delivered, group_of, timestamp, topic_of
from system_under_test.rocketmq.proxy.reading import decoded, queue_of, seconds
from system_under_test.rocketmq.proxy.refusals import OK, Refused, common_status, refused_by_broker
from system_under_test.rocketmq.proxy.sessions import Session
from system_under_test.rocketmq.proxy.v2 import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    Code,
    Duration,
    FilterExpression,
    FilterType,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    UserMessage,
)
from system_under_test.runtime.host import Host
from system_under_test.runtime.places import Places
from system_under_test.storage.message import Message, MessageInvalid

MAX_ENTRIES = 1_024
"""How many entries one call that acknowledges may have."""
SIDE_BY_SIDE = 256
"""So many deliveries of one broker are renewed at once."""
_POPPED = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.POLLING_TIMEOUT,
    ResponseCode.POLLING_FULL,
)


class Receiving:
    """`tend` renews what clients hold, for as long as the proxy runs."""

    def __init__(self, host: Host, config: ProxyConfig, brokers: Brokers, places: Places) -> None:
        self._host = host
        self._config = config
        self._brokers = brokers
        self._places = places
        self.holding = Holding(int(config.renew_every_s * 1e9), round(config.default_invisible_s * 1_000))
        self._renewing: set[str] = set()
        """Brokers with a task that renews what is held of them."""

    async def receive(self, request: ReceiveMessageRequest, session: Session) -> AsyncIterator[ReceiveMessageResponse]:
        """The status, the messages, the time of their delivery. Raises Refused.

        What it cannot tell comes again, and is among the dead letters once it came as often as its group wants.
        """
        asked, broker, polling_s = self._pop_request(request, session)
        timeout_s = self._config.broker_timeout_s + polling_s
        with self._places.waiting() if polling_s > 0 else nullcontext():
            response = await self._brokers.ask_master(asked.topic, broker, asked.encode(), timeout_s)
        if response.code not in _POPPED:
            raise refused_by_broker(response)
        if response.code != ResponseCode.SUCCESS:
            raise Refused(Code.MESSAGE_NOT_FOUND, "there is nothing to receive")
        try:
            answer = PopAnswer.decode(response)
            messages = _with_handles(answer, broker)
        except (RemotingError, MessageInvalid, ValueError) as error:
            raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error}") from error
        told = _decode_messages(messages)
        if request.auto_renew:
            now_ns = self._host.clock.monotonic_ns()
            for _, handle in told:
                self.holding.hold(session.client_id, asked.consumer_group, asked.topic, handle, now_ns)
        yield ReceiveMessageResponse(status=OK)
        for message, _ in told:
            message.topic = request.message_queue.topic if request.message_queue is not None else message.topic
            assert message.system_properties is not None
            message.system_properties.invisible_duration = _duration(asked.invisible_ms)
            yield ReceiveMessageResponse(message=message)
        yield ReceiveMessageResponse(delivery_timestamp=timestamp(self._host.clock.wall_ns() // 1_000_000))

    async def acknowledge(self, request: AckMessageRequest) -> AckMessageResponse:
        """Raises Refused."""
        group, topic = group_of(request.group), topic_of(request.topic)
        if not 0 < len(request.entries) <= MAX_ENTRIES:
            raise Refused(Code.BAD_REQUEST, f"a call has 1 to {MAX_ENTRIES} entries, not {len(request.entries)}")
        entries = await asyncio.gather(*(self._acknowledged(group, topic, entry) for entry in request.entries))
        return AckMessageResponse(status=common_status([entry.status for entry in entries]), entries=list(entries))

    async def change_invisible_duration(
        self, request: ChangeInvisibleDurationRequest
    ) -> ChangeInvisibleDurationResponse:
        """Raises Refused."""
        group, topic = group_of(request.group), topic_of(request.topic)
        invisible_ms = self._invisible_ms(request.invisible_duration, minimum_s=0.001)
        handle = _handle(request.receipt_handle)
        changed = await self._changed(group, topic, self.holding.current(handle), invisible_ms)
        self.holding.let_go(handle)
        return ChangeInvisibleDurationResponse(status=OK, receipt_handle=changed.encode())

    async def forward_to_dead_letters(
        self, request: ForwardMessageToDeadLetterQueueRequest
    ) -> ForwardMessageToDeadLetterQueueResponse:
        """Raises Refused; where it fails after the message is a dead letter, it also comes again."""
        group, topic = group_of(request.group), topic_of(request.topic)
        handle = _handle(request.receipt_handle)
        current = self.holding.current(handle)
        offset = await self._log_offset(group, topic, current)
        back = SendBackRequest(offset=offset, group=group, delay_level=-1, origin_topic=topic, max_reconsume_times=0)
        response = await self._brokers.ask_master(topic, current.broker_name, back.encode())
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        entry = AckMessageEntry(message_id=request.message_id, receipt_handle=request.receipt_handle)
        result = await self._acknowledged(group, topic, entry)
        return ForwardMessageToDeadLetterQueueResponse(status=result.status)

    async def _log_offset(self, group: str, topic: str, handle: ReceiptHandle) -> int:
        """Where the message of a handle stands in its broker's log. Raises Refused."""
        pull = PullRequest(
            topic=handle.topic(group, topic),
            queue_id=handle.queue_id,
            queue_offset=handle.offset,
            max_count=1,
            consumer_group=group,
        )
        response = await self._brokers.ask_master(topic, handle.broker_name, pull.encode())
        if response.code != ResponseCode.SUCCESS:
            raise Refused(Code.MESSAGE_NOT_FOUND, f"the broker has no message there: {response.remark or ''}")
        try:
            messages = decoded(PullAnswer.decode(response).data)
        except (RemotingError, MessageInvalid) as error:
            raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error}") from error
        if not messages or messages[0].queue_offset != handle.offset:
            raise Refused(Code.MESSAGE_NOT_FOUND, "the broker has another message there")
        return messages[0].physical_offset

    def give_back(self, client_id: str) -> None:
        """Let come again soon what this client holds, for it is gone."""
        self.holding.give_back(client_id, self._host.clock.monotonic_ns())

    async def tend(self) -> None:
        """While something is due at a broker it has a task of its own: one that does not answer holds up no other."""
        while True:
            await self._host.clock.sleep(min(1.0, self._config.renew_every_s / 4))
            for broker in self.holding.brokers_due(self._host.clock.monotonic_ns()):
                if broker not in self._renewing:
                    self._renewing.add(broker)
                    self._host.spawn(self._renew_at(broker), f"renewals at {broker}")

    async def _renew_at(self, broker: str) -> None:
        """Side by side, until nothing is due there."""
        try:
            while due := self.holding.due(broker, self._host.clock.monotonic_ns(), SIDE_BY_SIDE):
                await asyncio.gather(*map(self._renew, due))
        finally:
            self._renewing.discard(broker)

    async def _renew(self, name: str) -> None:
        held = self.holding.get(name)
        if held is None:
            return  # let go meanwhile
        invisible_ms = held.invisible_ms
        try:
            handle = await self._changed(held.group, held.topic, held.handle, invisible_ms)
        except Refused as refused:
            if refused.code == Code.INVALID_RECEIPT_HANDLE:
                self.holding.ended(name, held)
            else:
                self.holding.not_renewed(name, held, self._host.clock.monotonic_ns())
            return
        self.holding.renewed(name, held, handle, invisible_ms, self._host.clock.monotonic_ns())

    def _pop_request(self, request: ReceiveMessageRequest, session: Session) -> tuple[PopRequest, str, float]:
        """(the request, the broker's name, how long it may wait in seconds). Raises Refused."""
        broker, topic, queue_id = queue_of(request.message_queue)
        if request.auto_renew:
            invisible_ms = round(self._config.default_invisible_s * 1_000)
        else:
            invisible_ms = self._invisible_ms(request.invisible_duration, self._config.min_invisible_s)
        polling_s = min(seconds(request.long_polling_timeout), self._config.max_polling_s)
        expression = request.filter_expression or FilterExpression()
        asked = PopRequest(
            topic=topic,
            consumer_group=group_of(request.group),
            invisible_ms=invisible_ms,
            # Of a queue, but for reading in order, only the broker counts: simple consumers name one at random.
            queue_id=queue_id if session.is_fifo else ANY_QUEUE,
            max_count=min(max(request.batch_size, 1), self._config.max_receive_count, MAX_POPPED),
            poll_ms=round(polling_s * 1_000),
            born_ms=self._host.clock.wall_ns() // 1_000_000,
            expression=expression.expression or "*",
            expression_type=SQL92 if expression.type == FilterType.SQL else TAG,
            is_ordered=session.is_fifo,
        )
        return asked, broker, polling_s

    def _invisible_ms(self, duration: Duration | None, minimum_s: float) -> int:
        """Raises Refused."""
        wanted_s = self._config.default_invisible_s if duration is None else seconds(duration)
        if not minimum_s <= wanted_s <= self._config.max_invisible_s:
            raise Refused(
                Code.ILLEGAL_INVISIBLE_TIME,
                f"an invisible time is {minimum_s:g} to {self._config.max_invisible_s:g} s, not {wanted_s:g}",
            )
        return round(wanted_s * 1_000)

    async def _acknowledged(self, group: str, topic: str, entry: AckMessageEntry) -> AckMessageResultEntry:
        status = OK
        try:
            handle = _handle(entry.receipt_handle)
            current = self.holding.current(handle)
            request = HandleRequest(topic=current.topic(group, topic), consumer_group=group, handle=current)
            response = await self._brokers.ask_master(topic, current.broker_name, request.encode())
            if response.code == ResponseCode.SUCCESS:
                self.holding.let_go(handle)
            else:
                raise refused_by_broker(response)
        except Refused as refused:
            status = refused.status
        return AckMessageResultEntry(message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=status)

    async def _changed(self, group: str, topic: str, handle: ReceiptHandle, invisible_ms: int) -> ReceiptHandle:
        """The handle that counts from now on. Raises Refused."""
        request = HandleRequest(
            topic=handle.topic(group, topic), consumer_group=group, handle=handle, invisible_ms=invisible_ms
        )
        response = await self._brokers.ask_master(topic, handle.broker_name, request.encode())
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        try:
            return ChangedInvisibleTime.decode(response).of(handle)
        except RemotingError as error:
            raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error.remark}") from error


def _with_handles(answer: PopAnswer, broker: str) -> Sequence[tuple[Message, ReceiptHandle]]:
    """Raises MessageInvalid, ValueError."""
    messages, handles = decoded(answer.data), list(answer.handles(broker))
    if len(messages) != len(handles):
        raise ValueError(f"{len(messages)} messages with {len(handles)} receipt handles")
    return list(zip(messages, handles, strict=True))


def _decode_messages(messages: Sequence[tuple[Message, ReceiptHandle]]) -> list[tuple[UserMessage, ReceiptHandle]]:
    """As their consumer gets them, but for those whose body cannot be told. Raises Refused where that is so of all."""
    readable: list[tuple[UserMessage, ReceiptHandle]] = []
    reason: Refused | None = None
    for message, handle in messages:
        try:
            readable.append((delivered(message, handle.encode(), one_more(message.reconsume_times)), handle))
        except Refused as refused:
            reason = refused
    if reason is not None and not readable:
        raise reason
    return readable


def _handle(text: str) -> ReceiptHandle:
    """Raises Refused."""
    try:
        return ReceiptHandle.decode(text)
    except ValueError as error:
        raise Refused(Code.INVALID_RECEIPT_HANDLE, str(error)) from error


def _duration(time_ms: int) -> Duration:
    return Duration(seconds=time_ms // 1_000, nanos=time_ms % 1_000 * 1_000_000)
