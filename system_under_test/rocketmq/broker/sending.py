"""Takes messages from producers; only the master does."""

from __future__ import annotations

from dataclasses import replace

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.admission import Admission, without_brokers_own
from system_under_test.rocketmq.broker.consuming.retries import topic_after_tries
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.delayed.delay_placement import WaitingRooms
from system_under_test.rocketmq.broker.delayed.timer_messages import DELETES
from system_under_test.rocketmq.broker.putting import Puts
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.broker.topics.static_topics import StaticTopics, not_here
from system_under_test.rocketmq.broker.transactions.service import Transactions, is_half
from system_under_test.rocketmq.consumer_protocol import RETRY_PREFIX
from system_under_test.rocketmq.message_batch import BatchedMessage, decode_batch
from system_under_test.rocketmq.message_id import host_bytes
from system_under_test.rocketmq.message_protocol import IPV6_FLAGS, TRANSACTION_FLAGS, SendAnswer, SendRequest
from system_under_test.rocketmq.static_topic.logic_queue import Segment
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.rocketmq.transaction_protocol import HALF_MESSAGE, UNIQUE_KEY
from system_under_test.storage.message import decode_properties
from system_under_test.storage.new_message import NewMessage


class Sends:
    """SEND_MESSAGE in both forms, and batches in either."""

    def __init__(
        self,
        broker: BrokerContext,
        puts: Puts,
        waiting: WaitingRooms,
        transactions: Transactions,
        administration: Administration,
        static: StaticTopics,
        admission: Admission,
    ) -> None:
        self._host, self._config, self._ha = broker.host, broker.config, broker.ha
        self._puts = puts
        self._waiting = waiting
        self._transactions = transactions
        self._administration = administration
        self._static = static
        self._admission = admission

    @property
    def handlers(self) -> Handlers:
        codes = RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
        return dict.fromkeys(codes, self._send)

    async def _send(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        # All of it is in the coroutine, for the server may refuse to run it, and says then that nothing was done.
        request = SendRequest.decode(command)
        if self._config.auto_create_topics and self._ha.mastership is not None:
            await self._administration.make_topic_after(request.default_topic, request.topic, request.default_queues)
        if request.topic.startswith(RETRY_PREFIX):
            request = await self._for_another_try(request)
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        topic = self._administration.topic(request.topic)
        if not topic.is_writable:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"topic {topic.name} takes no messages")
        if request.queue_id < 0:
            request = replace(request, queue_id=self._chosen_queue(topic))
        # Nothing is waited for from here to the put: a queue that is frozen takes no message behind that.
        segment = self._static.leading(topic.name, request.queue_id)
        own = request if segment is None else replace(request, queue_id=segment.queue_id)
        check_queue(topic, own.queue_id, topic.write_queues)
        self._admission.require_known_compression(request.sys_flag)
        messages = [_new_message(own, each, host_bytes(peer.remote)) for each in _batched(request)]
        placed = [self._placed(own, message, segment) for message in messages]
        # A half message is measured with what names its producer, which is as long as it likes.
        self._admission.require_room(
            [both[is_half(both[0])] for both in zip(messages, placed, strict=True)], self._config
        )
        pending = self._puts.put(mastership, *placed)
        code, remark = await self._puts.acknowledged(pending)
        first = pending.puts[0].queue_offset
        answer = SendAnswer(
            message_id=",".join(self._puts.message_id(put) for put in pending.puts),
            queue_id=request.queue_id,
            queue_offset=first if segment is None else segment.logic(first),
            transaction_id=messages[0].properties.get(UNIQUE_KEY, ""),
        )
        return answer.encode(code, remark)

    async def _for_another_try(self, request: SendRequest) -> SendRequest:
        """What a consumer sends to be tried again goes to the dead letters if it was tried often enough."""
        name = request.topic.removeprefix(RETRY_PREFIX)
        group = self._administration.group(name)
        if group is None:
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {name!r} does not exist")
        most = group.retry_max_times if request.max_reconsume_times is None else request.max_reconsume_times
        topic = topic_after_tries(request.topic, request.reconsume_times, most)
        if topic == request.topic:
            return request
        await self._administration.make_topic_of_group(topic, 1)
        return replace(request, topic=topic, queue_id=0)

    def _chosen_queue(self, topic: TopicConfig) -> int:
        """One that takes messages here. Raises RemotingError (NOT_LEADER_FOR_QUEUE)."""
        if self._static.get(topic.name) is None:
            return self._host.random.randrange(topic.write_queues)
        led = self._static.led(topic.name)
        if not led:
            raise not_here(topic.name, -1, self._config.group)
        return self._host.random.choice(led)

    def _placed(self, request: SendRequest, message: NewMessage, segment: Segment | None) -> NewMessage:
        """As it is to be written now. Raises RemotingError."""
        if segment is not None and is_half(message):
            raise _illegal("messages to a static topic cannot be of a transaction")
        if is_half(message):
            return self._transactions.half(message, request.producer_group)
        placed = self._waiting.place(message)
        if segment is not None and placed.topic != request.topic:
            # By the time it comes out its queue may be another group's.
            raise _illegal("messages to a static topic cannot be delayed")
        if request.is_batch and placed.topic != request.topic:
            raise _illegal("messages of a batch cannot be delayed")
        return placed


def _batched(request: SendRequest) -> tuple[BatchedMessage, ...]:
    """Raises RemotingError (MESSAGE_ILLEGAL)."""
    if request.is_batch:
        return decode_batch(request.body)
    return (BatchedMessage(request.body, decode_properties(request.properties.encode()), request.flag),)


def _new_message(request: SendRequest, message: BatchedMessage, born_host: bytes) -> NewMessage:
    """What the message's layout has no room for is refused before anything is written, and what consumers would get
    to see at once although it says that they must not. Raises RemotingError (MESSAGE_ILLEGAL)."""
    if not (
        -(2**63) <= request.born_timestamp_ms < 2**63
        and -(2**31) <= message.flag < 2**31
        and -(2**31) <= request.sys_flag < 2**31
        and 0 <= request.reconsume_times < 2**31
    ):
        raise _illegal("bornTimestamp, flag, sysFlag or reconsumeTimes is out of range")
    if request.sys_flag & IPV6_FLAGS:
        raise _illegal("sysFlag says that the message's hosts have IPv6 addresses, which are not supported")
    is_said_half = message.properties.get(HALF_MESSAGE, "").lower() == "true"
    if request.sys_flag & TRANSACTION_FLAGS and not is_said_half:
        raise _illegal(f"sysFlag says that the message is of a transaction, but it has no property {HALF_MESSAGE}")
    if request.is_batch and is_said_half:
        raise _illegal("messages of a batch cannot be of a transaction")
    if is_said_half and DELETES in message.properties:
        raise _illegal(f"{DELETES}: what takes a timer back is of no transaction, for that may commit too late")
    return NewMessage(
        topic=request.topic,
        queue_id=request.queue_id,
        body=message.body,
        properties=without_brokers_own(message.properties),
        born_timestamp_ms=request.born_timestamp_ms,
        born_host=born_host,
        flag=message.flag,
        sys_flag=request.sys_flag,
        reconsume_times=request.reconsume_times,
    )


def _illegal(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, remark)
