"""The requests of POP: giving messages out, acknowledgements, other invisible times, and questions about them.

Only the master answers them. What it does under one mastership is `pop/service.py`'s; a new mastership begins anew.
"""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.filtering import subscribed
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.pop.context import PopContext
from system_under_test.rocketmq.broker.pop.polls import MAX_WAIT_S, Polls, Waiter
from system_under_test.rocketmq.broker.pop.records import CheckpointKey
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.consumer_group import check_name as check_group_name
from system_under_test.rocketmq.pop_protocol import (
    ANY_QUEUE,
    ChangedInvisibleTime,
    HandleRequest,
    PopAnswer,
    PopRequest,
    decode_batch_ack,
    retry_topic,
)
from system_under_test.rocketmq.topic import TopicConfig, check_name
from system_under_test.runtime.places import Places


class Pops:
    """POP_MESSAGE and what goes with it; `role_taken` after each change of role, `stop` before the log is closed."""

    def __init__(
        self,
        broker: BrokerContext,
        administration: Administration,
        places: Places,
        service_type: Callable[[PopContext, AnyMastership], PopService],
    ) -> None:
        self._host, self._ha, self._tables, self._config = broker.host, broker.ha, broker.tables, broker.config
        self._administration = administration
        self._service_type = service_type
        self._polls = Polls(broker.host, places)
        self._context = PopContext(
            host=broker.host,
            store=broker.store,
            config=broker.config,
            ensure_topic=administration.ensure_topic,
            groups=broker.tables.groups.get,
            polls=self._polls,
        )
        self._service: PopService | None = None
        broker.store.on_dispatched.append(self._dispatched)

    @property
    def handlers(self) -> Handlers:
        return {
            RequestCode.POP_MESSAGE: self._pop,
            RequestCode.PEEK_MESSAGE: self._peek,
            RequestCode.ACK_MESSAGE: lambda command, _: self._acknowledge(command),
            RequestCode.BATCH_ACK_MESSAGE: lambda command, _: self._acknowledge_batch(command),
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: lambda command, _: self._change_invisible_time(command),
            RequestCode.NOTIFICATION: lambda command, _: self._notify(command),
            RequestCode.POLLING_INFO: self._polling_info,
        }

    def role_taken(self) -> None:
        mastership = self._ha.mastership
        if self._service is not None and self._service.mastership is not mastership:
            self.stop()
        if mastership is not None and self._service is None:
            self._service = self._service_type(self._context, mastership)
            self._service.begin()

    def stop(self) -> None:
        if self._service is not None:
            self._service.end()
            self._service = None

    def _dispatched(self, topic: str, queue_id: int, end: int) -> None:
        if self._service is not None:
            self._service.dispatched()
        self._polls.wake(topic)

    def _serving(self) -> PopService:
        """Raises RemotingError (NOT_MASTER)."""
        service = self._service
        if service is None or service.mastership.ended or service.mastership is not self._ha.mastership:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        return service

    async def _pop(self, command: RemotingCommand, peer: Peer) -> RemotingCommand | None:
        request = PopRequest.decode(command)
        wanted = subscribed(self._config, request.expression, request.expression_type)
        until_ns = self._waits_until_ns(request)
        while not peer.closed:
            service = self._serving()
            topic = self._readable(request.topic, request.consumer_group, request.queue_id)
            answer = await service.pop(request, topic.read_queues, wanted)
            if answer is not None:
                return answer.encode()
            if self._host.clock.monotonic_ns() >= until_ns:
                return _nothing(request, ResponseCode.POLLING_TIMEOUT)
            if self._polls.is_full:
                return _nothing(request, ResponseCode.POLLING_FULL)
            await self._wait(request, until_ns)
        # Nobody is there any more: what came meanwhile would be invisible for nothing.
        return None

    def _waits_until_ns(self, request: PopRequest) -> int:
        return self._host.clock.monotonic_ns() + int(min(request.poll_ms / 1000, MAX_WAIT_S) * 1e9)

    async def _wait(self, request: PopRequest, until_ns: int) -> None:
        """Until there may be something, or time is over."""
        waiter = Waiter(request.topic, request.consumer_group, request.queue_id)
        topics = (request.topic, retry_topic(request.consumer_group, request.topic))
        await self._polls.wait(waiter, topics, (until_ns - self._host.clock.monotonic_ns()) / 1e9)

    def _peek(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = PopRequest.decode(_with(command, invisibleTime="1"))
        topic = self._readable(request.topic, request.consumer_group, request.queue_id)
        messages, rest = self._serving().peek(request, topic.read_queues)
        answer = PopAnswer(pop_time_ms=0, invisible_ms=0, revive_queue=0, data=b"".join(messages), rest=rest)
        return answer.encode(ResponseCode.SUCCESS if messages else ResponseCode.PULL_NOT_FOUND)

    async def _acknowledge(self, command: RemotingCommand) -> RemotingCommand:
        request = HandleRequest.decode(command)
        key = _key(request)
        if not await self._serving().acknowledge([(key, (request.handle.offset,))]):
            raise _no_message()
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _acknowledge_batch(self, command: RemotingCommand) -> RemotingCommand:
        deliveries = [
            (CheckpointKey(ack.consumer_group, ack.topic, ack.queue_id, ack.start_offset, ack.pop_time_ms), ack.offsets)
            for ack in decode_batch_ack(command)
        ]
        wanted = sum(len(offsets) for _, offsets in deliveries)
        settled = await self._serving().acknowledge(deliveries)
        if settled < wanted or not wanted:
            raise RemotingError(
                ResponseCode.NO_MESSAGE, f"{settled} of {wanted} are acknowledged, the others hold no message any more"
            )
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _change_invisible_time(self, command: RemotingCommand) -> RemotingCommand:
        request = HandleRequest.decode(command)
        assert request.invisible_ms is not None
        changed = await self._serving().change_invisible_time(
            _key(request), request.handle.offset, request.invisible_ms
        )
        if changed is None:
            raise _no_message()
        return ChangedInvisibleTime(
            pop_time_ms=changed.key.pop_time_ms,
            invisible_ms=changed.invisible_ms,
            revive_queue=request.handle.revive_queue,
        ).encode()

    async def _notify(self, command: RemotingCommand) -> RemotingCommand:
        """Whether there is something to pop, once there is or the request's time is over."""
        request = PopRequest.decode(_with(command, invisibleTime="1", maxMsgNums="1"))
        until_ns = self._waits_until_ns(request)
        while True:
            topic = self._readable(request.topic, request.consumer_group, request.queue_id)
            has_messages = self._serving().has_messages(request, topic.read_queues)
            is_full = self._polls.is_full
            if has_messages or is_full or self._host.clock.monotonic_ns() >= until_ns:
                fields = {
                    "hasMsg": "true" if has_messages else "false",
                    "pollingFull": "true" if is_full and not has_messages else "false",
                }
                return RemotingCommand.response(ResponseCode.SUCCESS, fields)
            await self._wait(request, until_ns)

    def _polling_info(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = PopRequest.decode(_with(command, invisibleTime="1", maxMsgNums="1"))
        self._readable(request.topic, request.consumer_group, request.queue_id)
        count = self._polls.count(Waiter(request.topic, request.consumer_group, request.queue_id))
        return RemotingCommand.response(ResponseCode.SUCCESS, {"pollingNum": str(count)})

    def _readable(self, name: str, group_name: str, queue_id: int) -> TopicConfig:
        """Raises RemotingError where this group may not consume this queue of the topic."""
        topic = self._administration.topic(name)
        if not topic.is_readable:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"topic {name} may not be read")
        if queue_id != ANY_QUEUE:
            check_queue(topic, queue_id, topic.read_queues)
        try:
            check_group_name(group_name)
            check_name(retry_topic(group_name, name))
        except ValueError as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"the group's retry topic: {error}") from error
        group = self._tables.groups.get(group_name)
        if group is None and not self._config.auto_create_groups:
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group_name!r} does not exist")
        if group is not None and not group.may_consume:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"group {group_name} may not consume")
        return topic


def _key(request: HandleRequest) -> CheckpointKey:
    handle = request.handle
    return CheckpointKey(
        request.consumer_group, request.topic, handle.queue_id, handle.start_offset, handle.pop_time_ms
    )


def _with(command: RemotingCommand, **fields: str) -> RemotingCommand:
    """The request with fields that others of its kind have."""
    return RemotingCommand.request(command.code, {**fields, **command.ext_fields})


def _nothing(request: PopRequest, code: ResponseCode) -> RemotingCommand:
    return PopAnswer(pop_time_ms=0, invisible_ms=request.invisible_ms, revive_queue=0).encode(code)


def _no_message() -> RemotingError:
    return RemotingError(
        ResponseCode.NO_MESSAGE, "this delivery holds no message: it is acknowledged, replaced, or its time is over"
    )
