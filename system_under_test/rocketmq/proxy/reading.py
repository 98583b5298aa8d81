"""PullMessage and the offsets of groups: for clients that keep track of queues themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.consumer_protocol import one_more
from system_under_test.rocketmq.filter.subscription import SQL92, TAG
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, QueueRequest
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.messages import delivered, group_of, topic_of
from system_under_test.rocketmq.proxy.refusals import OK, Refused, refused_by_broker
from system_under_test.rocketmq.proxy.v2 import (
    Code,
    Duration,
    FilterExpression,
    FilterType,
    GetOffsetRequest,
    GetOffsetResponse,
    MessageQueue,
    PullMessageRequest,
    PullMessageResponse,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    QueryOffsetResponse,
    Status,
    UpdateOffsetRequest,
    UpdateOffsetResponse,
    UserMessage,
)
from system_under_test.runtime.places import Places
from system_under_test.storage.message import Message, MessageInvalid, decode_message

FOUND = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)


class Reading:
    def __init__(self, config: ProxyConfig, brokers: Brokers, places: Places) -> None:
        self._config = config
        self._places = places
        self._brokers = brokers

    async def pull(self, request: PullMessageRequest) -> AsyncIterator[PullMessageResponse]:
        """The status, the messages, the offset to go on from. Raises Refused."""
        broker, topic, queue_id = queue_of(request.message_queue)
        group = group_of(request.group)
        expression = request.filter_expression or FilterExpression()
        polling_s = min(seconds(request.long_polling_timeout), self._config.max_polling_s)
        asked = PullRequest(
            topic=topic,
            queue_id=queue_id,
            queue_offset=request.offset,
            max_count=min(max(request.batch_size, 1), self._config.max_receive_count),
            consumer_group=group,
            suspend_timeout_ms=round(polling_s * 1_000),
            subscription=expression.expression or "*",
            expression_type=SQL92 if expression.type == FilterType.SQL else TAG,
        )
        timeout_s = self._config.broker_timeout_s + polling_s
        with self._places.waiting() if polling_s > 0 else nullcontext():
            response = await self._brokers.ask_master(topic, broker, asked.encode(), timeout_s)
        if response.code not in FOUND:
            raise refused_by_broker(response)
        try:
            answer = PullAnswer.decode(response)
            messages = decoded(answer.data)
        except (RemotingError, MessageInvalid) as error:
            raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error}") from error
        told, refused = _decode_messages(messages)
        if refused is not None and not told:
            raise refused
        found = OK if told else Status(code=Code.MESSAGE_NOT_FOUND, message="there is nothing yet")
        yield PullMessageResponse(status=found)
        for each in told:
            yield PullMessageResponse(message=each)
        yield PullMessageResponse(
            next_offset=answer.next_offset if refused is None else messages[len(told)].queue_offset
        )

    async def committed(self, request: GetOffsetRequest) -> GetOffsetResponse:
        """Raises Refused."""
        broker, topic, queue_id = queue_of(request.message_queue)
        asked = QueueRequest(topic=topic, queue_id=queue_id, consumer_group=group_of(request.group))
        offset = await self._offset(topic, broker, asked.encode(RequestCode.QUERY_CONSUMER_OFFSET))
        return GetOffsetResponse(status=OK, offset=offset)

    async def commit(self, request: UpdateOffsetRequest) -> UpdateOffsetResponse:
        """Raises Refused."""
        broker, topic, queue_id = queue_of(request.message_queue)
        asked = QueueRequest(
            topic=topic, queue_id=queue_id, consumer_group=group_of(request.group), commit_offset=request.offset
        )
        response = await self._brokers.ask_master(topic, broker, asked.encode(RequestCode.UPDATE_CONSUMER_OFFSET))
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        return UpdateOffsetResponse(status=OK)

    async def query_offset(self, request: QueryOffsetRequest) -> QueryOffsetResponse:
        """Raises Refused."""
        broker, topic, queue_id = queue_of(request.message_queue)
        codes = {
            QueryOffsetPolicy.BEGINNING: RequestCode.GET_MIN_OFFSET,
            QueryOffsetPolicy.END: RequestCode.GET_MAX_OFFSET,
        }
        code = {int(policy): code for policy, code in codes.items()}.get(request.query_offset_policy)
        if code is None:
            raise Refused(Code.BAD_REQUEST, "offsets are found by their place, BEGINNING or END, not by time")
        asked = QueueRequest(topic=topic, queue_id=queue_id).encode(code)
        return QueryOffsetResponse(status=OK, offset=await self._offset(topic, broker, asked))

    async def _offset(self, topic: str, broker: str, command: RemotingCommand) -> int:
        response = await self._brokers.ask_master(topic, broker, command)
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        try:
            return int(response.ext_fields["offset"])
        except (KeyError, ValueError) as error:
            raise Refused(Code.INTERNAL_ERROR, f"the broker's answer cannot be read: {error!r}") from error


def _decode_messages(messages: Sequence[Message]) -> tuple[list[UserMessage], Refused | None]:
    """As their reader gets them, up to the first whose body cannot be told, and why not."""
    readable: list[UserMessage] = []
    for message in messages:
        try:
            readable.append(delivered(message, None, one_more(message.reconsume_times)))
        except Refused as refused:
            return readable, refused
    return readable, None


def queue_of(queue: MessageQueue | None) -> tuple[str, str, int]:
    """(broker's name, topic, queue id). Raises Refused."""
    if queue is None or queue.broker is None:
        raise Refused(Code.BAD_REQUEST, "the call names no queue and its broker")
    return queue.broker.name, topic_of(queue.topic), queue.id


def seconds(duration: Duration | None) -> float:
    """0 for one that was not given, or is negative."""
    return 0.0 if duration is None else max(0.0, duration.seconds + duration.nanos / 1e9)


def decoded(data: bytes) -> list[Message]:
    """Messages as they stand one after the other. Raises MessageInvalid."""
    messages: list[Message] = []
    position = 0
    while position < len(data):
        messages.append(decode_message(data, position))
        position += messages[-1].size
    return messages
