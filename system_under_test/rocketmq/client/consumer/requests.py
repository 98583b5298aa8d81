"""What a consumer asks of brokers, each request once; every failure is a ClientError.

Requests go to addresses. Which address is a queue's master or one of its replicas says the route of its topic, which is
looked up anew after a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.client.message_client import MessageClient, refusal
from system_under_test.rocketmq.client.pop_client import PopClient
from system_under_test.rocketmq.consumer_protocol import (
    Assignment,
    AssignmentRequest,
    Heartbeat,
    MessageQueue,
    QueueLockRequest,
    SendBackRequest,
    assignments,
    locked_queues,
    members,
)
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, QueueRequest
from system_under_test.rocketmq.nameserver.route import GroupRoute, TopicRoute
from system_under_test.rocketmq.topic import READ
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from system_under_test.storage.message import Message, MessageInvalid, decode_message

T = TypeVar("T")

_PULL_CODES = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """`is_moved`: what was asked for lies outside of the queue, which goes on at `next_offset`."""

    messages: tuple[Message, ...]
    next_offset: int
    is_moved: bool


class ConsumerRequests:
    """`on_request` hears requests of brokers."""

    def __init__(
        self,
        host: Host,
        nameservers: Sequence[str],
        timeout_s: float,
        on_request: Callable[[str, RemotingCommand], None],
    ) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self._remoting = RemotingClient(host, timeout_s, on_request)
        self._routes = MessageClient(host, nameservers, timeout_s)

    def close(self) -> None:
        self._remoting.close()
        self._routes.close()

    def pops(self, group: str) -> PopClient:
        """To pop for a group; closed with this."""
        return PopClient(self._host, self._routes, group)

    # routes

    async def route(self, topic: str) -> TopicRoute:
        return await self._routes.route(topic)

    def forget_route(self, topic: str) -> None:
        """The next question asks a NameServer again."""
        self._routes.forget_route(topic)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """All that may be read, in order."""
        route = await self.route(topic)
        return tuple(
            MessageQueue(topic, group.broker_name, queue_id)
            for group in route.groups
            if group.permission & READ
            for queue_id in range(group.read_queues)
        )

    async def broker_group(self, queue: MessageQueue) -> GroupRoute:
        for group in (await self.route(queue.topic)).groups:
            if group.broker_name == queue.broker_name:
                return group
        self.forget_route(queue.topic)
        raise ClientError("no-route", True, f"{queue.topic} does not lie on {queue.broker_name}")

    async def master(self, queue: MessageQueue) -> str:
        address = (await self.broker_group(queue)).master
        if address is None:
            self.forget_route(queue.topic)
            raise ClientError("no-route", True, f"{queue.broker_name} has no master")
        return address

    # members

    async def heartbeat(self, address: str, heartbeat: Heartbeat) -> None:
        await self._done(address, heartbeat.encode())

    async def leave(self, address: str, client_id: str, group: str) -> None:
        fields = {"clientID": client_id, "consumerGroup": group}
        await self._done(address, RemotingCommand.request(RequestCode.UNREGISTER_CLIENT, fields))

    async def members(self, address: str, group: str) -> tuple[str, ...]:
        """As this broker knows them; none where it knows none."""
        command = RemotingCommand.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
        answer = await self._ask(address, command)
        if answer.code == ResponseCode.SYSTEM_ERROR:
            return ()
        return self._decoded(address, answer, members)

    async def assignment(self, address: str, request: AssignmentRequest) -> tuple[Assignment, ...] | None:
        """None: this broker does not know."""
        return self._decoded(address, await self._ask(address, request.encode()), assignments)

    # queues

    async def pull(self, address: str, request: PullRequest) -> Pulled:
        answer = await self._ask(address, request.encode(), self._timeout_s + request.suspend_timeout_ms / 1000)
        if answer.code not in _PULL_CODES:
            raise refusal(answer, address)
        pulled = self._decoded(address, answer, PullAnswer.decode)
        return Pulled(
            messages=self._decoded(address, answer, lambda answer: _messages(answer.body)),
            next_offset=pulled.next_offset,
            is_moved=answer.code == ResponseCode.PULL_OFFSET_MOVED,
        )

    async def committed_offset(self, queue: MessageQueue, group: str) -> int | None:
        """None: the group has committed none."""
        request = QueueRequest(topic=queue.topic, queue_id=queue.queue_id, consumer_group=group)
        address = await self.master(queue)
        answer = await self._ask(address, request.encode(RequestCode.QUERY_CONSUMER_OFFSET))
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return self._decoded(address, answer, _offset)

    async def commit(self, queue: MessageQueue, group: str, offset: int) -> None:
        request = QueueRequest(topic=queue.topic, queue_id=queue.queue_id, consumer_group=group, commit_offset=offset)
        await self._done(await self.master(queue), request.encode(RequestCode.UPDATE_CONSUMER_OFFSET))

    async def max_offset(self, queue: MessageQueue) -> int:
        request = QueueRequest(topic=queue.topic, queue_id=queue.queue_id)
        address = await self.master(queue)
        return self._decoded(address, await self._ask(address, request.encode(RequestCode.GET_MAX_OFFSET)), _offset)

    async def lock(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> tuple[MessageQueue, ...]:
        """Queues of one broker group; those that were given."""
        request = QueueLockRequest(group=group, client_id=client_id, queues=tuple(queues))
        address = await self.master(queues[0])
        answer = await self._ask(address, request.encode(RequestCode.LOCK_BATCH_MQ))
        return self._decoded(address, answer, locked_queues)

    async def unlock(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        request = QueueLockRequest(group=group, client_id=client_id, queues=tuple(queues))
        await self._done(await self.master(queues[0]), request.encode(RequestCode.UNLOCK_BATCH_MQ))

    async def send_back(self, queue: MessageQueue, request: SendBackRequest) -> None:
        await self._done(await self.master(queue), request.encode())

    async def _done(self, address: str, command: RemotingCommand) -> None:
        answer = await self._ask(address, command)
        if answer.code != ResponseCode.SUCCESS:
            raise refusal(answer, address)

    async def _ask(self, address: str, command: RemotingCommand, timeout_s: float | None = None) -> RemotingCommand:
        try:
            return await self._remoting.invoke(address, command, timeout_s or self._timeout_s)
        except ConnectFailed as error:
            raise ClientError("connect-failed", True, str(error), address) from error
        except ConnectionClosed as error:
            raise ClientError("connection-lost", False, str(error), address) from error
        except TimeoutError as error:
            raise ClientError("client-timeout", False, str(error), address) from error

    def _decoded(self, address: str, answer: RemotingCommand, decode: Callable[[RemotingCommand], T]) -> T:
        if answer.code not in _PULL_CODES:
            raise refusal(answer, address)
        try:
            return decode(answer)
        except (RemotingError, ValueError, KeyError, MessageInvalid) as error:
            raise ClientError("outcome-unknown", False, f"malformed answer: {error!r}", address) from error


def _offset(answer: RemotingCommand) -> int:
    return int(answer.ext_fields["offset"])


def _messages(data: bytes) -> tuple[Message, ...]:
    found: list[Message] = []
    position = 0
    while position < len(data):
        message = decode_message(data, position)
        found.append(message)
        position += message.size
    return tuple(found)
