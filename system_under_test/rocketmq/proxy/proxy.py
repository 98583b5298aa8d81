"""The proxy's parts put together: calls of version 2, each given to the part that answers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from system_under_test.grpc.protobuf import Message
from system_under_test.grpc.server import Call, GrpcServer, Handler
from system_under_test.remoting.client import RemotingClient
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.groups import consumes_in_order
from system_under_test.rocketmq.proxy.messages import group_of, topic_of
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.reading import Reading
from system_under_test.rocketmq.proxy.refusals import OK, Refused
from system_under_test.rocketmq.proxy.routes import assignment_of, route_of
from system_under_test.rocketmq.proxy.sending import Sending
from system_under_test.rocketmq.proxy.sessions import Session, is_consumer, publish
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    AckMessageRequest,
    AckMessageResponse,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    EndTransactionRequest,
    EndTransactionResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    GetOffsetRequest,
    GetOffsetResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MessageType,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    PullMessageRequest,
    PullMessageResponse,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryOffsetRequest,
    QueryOffsetResponse,
    QueryRouteRequest,
    QueryRouteResponse,
    RecallMessageRequest,
    RecallMessageResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    TelemetryCommand,
    UpdateOffsetRequest,
    UpdateOffsetResponse,
)
from system_under_test.runtime.host import Host

HOUSEKEEPING_S = 10.0

Q = TypeVar("Q", bound=Message)
Answering = Callable[[Q, Session], Awaitable[Message]]


class Proxy:
    """In front of NameServers and their brokers; one in a broker's process reaches that broker as it reaches others."""

    def __init__(self, host: Host, config: ProxyConfig, parts: ProxyParts) -> None:
        self._host = host
        self._config = config
        self._remoting = RemotingClient(host, on_request=lambda address, command: self._asked(address, command))
        self._brokers = Brokers(host, config, self._remoting)
        self._sessions = parts.sessions(config, partial(consumes_in_order, self._brokers))
        self._transactions = parts.transactions(host, self._brokers, self._sessions)
        self._places = parts.places(config.running_calls)
        self._asked = self._transactions.asked
        self._parts = parts
        self._receiving = parts.receiving(host, config, self._brokers, self._places)
        self._tasks: list[asyncio.Task[None]] = []
        self._server = GrpcServer(host, self._handlers(), self._places)

    async def start(self) -> None:
        """Raises OSError if the port is taken."""
        await self._server.start(self._config.listen_port)
        self._tasks = [
            self._host.spawn(self._keep_house(), "proxy housekeeping"),
            self._host.spawn(self._receiving.tend(), "proxy renewals"),
            self._host.spawn(self._transactions.tend(self._remoting), "proxy heartbeats"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._server.close()
        self._remoting.close()

    def _handlers(self) -> dict[str, Handler]:
        brokers, receiving = self._brokers, self._receiving
        sending = self._parts.sending(self._host, self._config, brokers)
        reading = Reading(self._config, brokers, self._places)
        handlers = {
            "QueryRoute": self._unary(QueryRouteRequest, QueryRouteResponse, lambda q, _: route_of(brokers, q)),
            "QueryAssignment": self._unary(
                QueryAssignmentRequest, QueryAssignmentResponse, lambda q, s: assignment_of(brokers, q, s.is_fifo)
            ),
            "ReceiveMessage": self._streaming(ReceiveMessageRequest, ReceiveMessageResponse, receiving.receive),
            "AckMessage": self._unary(AckMessageRequest, AckMessageResponse, lambda q, _: receiving.acknowledge(q)),
            "ChangeInvisibleDuration": self._unary(
                ChangeInvisibleDurationRequest,
                ChangeInvisibleDurationResponse,
                lambda q, _: receiving.change_invisible_duration(q),
            ),
            "ForwardMessageToDeadLetterQueue": self._unary(
                ForwardMessageToDeadLetterQueueRequest,
                ForwardMessageToDeadLetterQueueResponse,
                lambda q, _: receiving.forward_to_dead_letters(q),
            ),
            "EndTransaction": self._unary(
                EndTransactionRequest, EndTransactionResponse, lambda q, _: self._transactions.end(q)
            ),
            "Heartbeat": self._unary(HeartbeatRequest, HeartbeatResponse, self._heartbeat),
            "SendMessage": self._unary(SendMessageRequest, SendMessageResponse, lambda q, s: self._send(sending, q, s)),
            "RecallMessage": self._unary(RecallMessageRequest, RecallMessageResponse, lambda q, _: sending.recall(q)),
            "NotifyClientTermination": self._unary(
                NotifyClientTerminationRequest, NotifyClientTerminationResponse, self._terminated
            ),
            "PullMessage": self._streaming(PullMessageRequest, PullMessageResponse, lambda q, _: reading.pull(q)),
            "GetOffset": self._unary(GetOffsetRequest, GetOffsetResponse, lambda q, _: reading.committed(q)),
            "UpdateOffset": self._unary(UpdateOffsetRequest, UpdateOffsetResponse, lambda q, _: reading.commit(q)),
            "QueryOffset": self._unary(QueryOffsetRequest, QueryOffsetResponse, lambda q, _: reading.query_offset(q)),
            "Telemetry": self._telemetry,
        }
        return {SERVICE + name: handler for name, handler in handlers.items()}

    def _unary(self, request: type[Q], response: type[Message], answering: Answering[Q]) -> Handler:
        """Of a method with one message there and one back; what is refused is told in the answer's status."""
        refusal: Callable[..., Message] = response

        async def handle(call: Call) -> None:
            asked = request.decode(await call.only())
            try:
                answer = await answering(asked, self._session(call))
            except Refused as refused:
                answer = refusal(status=refused.status)
            await call.send(answer.encode())

        return handle

    def _streaming(
        self, request: type[Q], response: type[Message], answering: Callable[[Q, Session], AsyncIterator[Message]]
    ) -> Handler:
        """Of a method with one message there and several back."""
        refusal: Callable[..., Message] = response

        async def handle(call: Call) -> None:
            asked = request.decode(await call.only())
            try:
                async for answer in answering(asked, self._session(call)):
                    await call.send(answer.encode())
            except Refused as refused:
                await call.send(refusal(status=refused.status).encode())

        return handle

    def _session(self, call: Call) -> Session:
        """Raises Refused."""
        return self._sessions.of(call, self._host.clock.monotonic_ns())

    async def _heartbeat(self, request: HeartbeatRequest, session: Session) -> HeartbeatResponse:
        if is_consumer(request.client_type):
            group_of(request.group)
        return HeartbeatResponse(status=OK)

    async def _send(self, sending: Sending, request: SendMessageRequest, session: Session) -> SendMessageResponse:
        """Raises Refused."""
        for message in request.messages:
            system = message.system_properties
            if system is not None and system.message_type == MessageType.TRANSACTION:
                with suppress(Refused):  # it is refused by itself
                    publish(session, topic := topic_of(message.topic))
                    self._transactions.published((topic,))
        return await sending.send(request)

    async def _terminated(self, _: NotifyClientTerminationRequest, session: Session) -> Message:
        self._sessions.forget(session.client_id)
        self._receiving.give_back(session.client_id)
        return NotifyClientTerminationResponse(status=OK)

    async def _telemetry(self, call: Call) -> None:
        try:
            session = self._session(call)
        except Refused as refused:
            await call.send(TelemetryCommand(status=refused.status).encode())
            return
        await self._sessions.converse(call, session, self._host.clock.monotonic_ns)

    async def _keep_house(self) -> None:
        while True:
            await self._host.clock.sleep(min(HOUSEKEEPING_S, self._config.client_expires_s / 4))
            for client_id in self._sessions.expire(self._host.clock.monotonic_ns()):
                self._receiving.give_back(client_id)
