"""What clients send at the borders of what is taken, where `values=bordering` says so.

Messages of workloads are sometimes padded, up to the greatest size and beyond it. Beside them there are requests
about a topic of their own, which no history tells of: messages that must be refused, or that must end nobody who works
on them, and pulls that wait. Whether they are answered is nobody's business; what they do to all others is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from harness.client import Client
from harness.operation import Operation
from system_under_test.grpc.client import GrpcClient
from system_under_test.grpc.errors import GrpcError, StreamEnded
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.broker.admission import most_bytes
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.client.message_client import MessageClient, SendResult
from system_under_test.rocketmq.consumer_protocol import Heartbeat, SendBackRequest
from system_under_test.rocketmq.message_protocol import PullRequest, SendAnswer, SendRequest
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    ClientType,
    Publishing,
    Resource,
    Settings,
    TelemetryCommand,
)
from system_under_test.rocketmq.transaction_protocol import HALF_MESSAGE
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from system_under_test.storage.message import MAX_PROPERTIES_BYTES, MAX_TIMES, encode_properties, message_bytes
from workloads.systems.rocketmq.settings import (
    BORDERING_MESSAGE_BYTES,
    BORDERS,
    PROXY_PORT,
    RocketmqSettings,
    proxy_names,
)

PADDED_SHARE = 0.06
"""Share of a workload's messages that are padded with blanks."""
NEAR_BYTES = 1_024
"""So far below the greatest size most of these are: there something is added to them that may have no room."""
ASIDE_SHARE = 0.05
"""Share of the operations that send beside which something else is asked."""
SENDING = ("send", "enqueue", "send-batch")
GROUP = "borderers"
POLLS, POLL_MS, POLL_AGAIN_S = 24, 25_000, 1.0
UNKNOWN_COMPRESSION = 1 | 7 << 8
_FAILURES = (ClientError, ConnectFailed, ConnectionClosed, TimeoutError, RemotingError, GrpcError, StreamEnded)


def greatest_bytes(settings: RocketmqSettings) -> int:
    """So much of the log a message may take."""
    config = BrokerConfig(
        name_servers=(),
        controllers=(),
        max_message_bytes=BORDERING_MESSAGE_BYTES,
        file_bytes=settings.file_bytes,
    )
    return most_bytes(config)


def padded(body: bytes, topic: str, properties: str, settings: RocketmqSettings, random: Any) -> bytes:
    """The body of a workload's message, in a few cases with blanks before it: as many as may be, one more, or somewhat
    less."""
    if random.random() >= PADDED_SHARE:
        return body
    room = greatest_bytes(settings) - message_bytes(topic.encode(), body, properties.encode())
    blanks = random.choice((room, room + 1, *(room - random.randrange(NEAR_BYTES) for _ in range(4))))
    return body.rjust(len(body) + max(0, blanks))


class BorderingMessages(MessageClient):
    """Pads what it sends."""

    settings: RocketmqSettings

    async def send(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        *,
        properties: str = "",
        sys_flag: int = 0,
        broker_name: str | None = None,
    ) -> SendResult:
        body = padded(body, topic, properties, self.settings, self._host.random)
        return await super().send(
            topic, queue_id, body, properties=properties, sys_flag=sys_flag, broker_name=broker_name
        )


class BorderingClient:
    """A workload's client, that sometimes asks something else beside a send."""

    def __init__(self, inner: Client, messages: MessageClient, host: Any, settings: RocketmqSettings) -> None:
        self._inner = inner
        self._host = host
        self._messages = messages
        self._remoting = RemotingClient(host)
        self._grpc = GrpcClient(host)
        self._proxies = proxy_names(settings)
        self._greatest = greatest_bytes(settings)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_asked = False
        self._is_polling = False

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._messages.close()
        self._remoting.close()
        self._grpc.close()
        await self._inner.close()

    async def invoke(self, operation: Operation) -> Operation:
        if operation.f in SENDING and self._host.random.random() < ASIDE_SHARE:
            self._tasks = [task for task in self._tasks if not task.done()]
            asked: Callable[[], Awaitable[None]] = self._host.random.choice(
                (
                    *(self._send_back, self._send_later, self._half, self._flags, self._properties, self._names),
                    *[self._poll] * 2,
                )
            )
            self._tasks.append(self._host.spawn(self._beside(asked), "at the borders"))
        return await self._inner.invoke(operation)

    async def _beside(self, asked: Callable[[], Awaitable[None]]) -> None:
        with suppress(*_FAILURES):
            await asked()

    async def _master(self) -> str:
        groups = (await self._messages.route(BORDERS)).groups
        master = self._host.random.choice(groups).master
        if master is None:
            raise ClientError("no-route", True, "no master")
        return str(master)

    async def _ask(self, command: RemotingCommand) -> RemotingCommand:
        return await self._remoting.invoke(await self._master(), command, 3.0)

    async def _sent(self, body: bytes, properties: Mapping[str, str], **fields: Any) -> SendAnswer:
        request = SendRequest(
            topic=BORDERS,
            queue_id=0,
            body=body,
            born_timestamp_ms=0,
            properties=encode_properties(properties).decode(),
            **fields,
        )
        return SendAnswer.decode(await self._ask(request.encode()))

    def _large(self, properties: Mapping[str, str]) -> bytes:
        room = self._greatest - message_bytes(BORDERS.encode(), b"", encode_properties(properties))
        near: int = self._host.random.randrange(NEAR_BYTES)
        return b"x" * max(1, room - near)

    async def _send_back(self) -> None:
        """What was tried as often as a number can say."""
        sent = await self._sent(b"often", {}, reconsume_times=MAX_TIMES - self._host.random.randrange(2))
        offset = int(sent.message_id[16:] or "0", 16)
        back = SendBackRequest(offset=offset, group=GROUP, delay_level=self._host.random.choice((-1, 1, MAX_TIMES)))
        await self._ask(back.encode())

    async def _send_later(self) -> None:
        waits = self._host.random.choice(({"DELAY": "1"}, {"TIMER_DELAY_MS": "1500"}, {"TIMER_DELAY_SEC": "6"}))
        await self._sent(self._large(waits), {**waits, "TIMER_ROLLED_FROM": "0"})

    async def _half(self) -> None:
        """About which proxies have to ask a producer of theirs."""
        await self._tell_a_proxy()
        flags = self._host.random.choice((0, UNKNOWN_COMPRESSION))
        await self._sent(b"half", {HALF_MESSAGE: "true"}, sys_flag=flags, producer_group=BORDERS)

    async def _flags(self) -> None:
        flag = self._host.random.choice((-(2**31), 2**31 - 1, 1 << 30, UNKNOWN_COMPRESSION, 3 << 8, -1))
        await self._sent(b"flags", {}, sys_flag=flag & ~(4 | 8 | 16 | 32), flag=flag)

    async def _properties(self) -> None:
        length = self._host.random.choice((MAX_PROPERTIES_BYTES, MAX_PROPERTIES_BYTES - 2_048, 100)) - 4
        await self._sent(b"long", {"k": "v" * (length - self._host.random.randrange(3))})

    async def _poll(self) -> None:
        """From now on so many wait for what never comes, as consumers do."""
        if self._is_polling:
            return
        self._is_polling = True
        while True:
            with suppress(*_FAILURES):
                master = await self._master()
                polls = [
                    self._remoting.invoke(master, _waiting(queue_id % 7 + 1).encode(), POLL_MS / 1000 + 3)
                    for queue_id in range(POLLS)
                ]
                await asyncio.gather(*polls, return_exceptions=True)
            await self._host.clock.sleep(POLL_AGAIN_S)

    async def _names(self) -> None:
        name = "n" * self._host.random.choice((127, 128, 255, 256, 40_000))
        await self._ask(Heartbeat(client_id=name, producer_groups=(name,)).encode())
        await self._ask(SendRequest(topic=name, queue_id=0, body=b"x", born_timestamp_ms=0).encode())

    async def _tell_a_proxy(self) -> None:
        """That this client sends halves to the topic: it is one whom proxies may ask."""
        if self._is_asked or not self._proxies:
            return
        self._is_asked = True
        proxy = self._host.random.choice(self._proxies)
        stream = await self._grpc.open(
            f"{proxy}:{PROXY_PORT}", f"{SERVICE}Telemetry", {"x-mq-client-id": f"{self._host.name}@{BORDERS}"}
        )
        publishing = Publishing(topics=[Resource(name=BORDERS)])
        settings = Settings(client_type=ClientType.PRODUCER, publishing=publishing)
        await stream.send(TelemetryCommand(settings=settings).encode())


def _waiting(queue_id: int) -> PullRequest:
    """At a queue that is empty for ever: all that is sent goes to the first one."""
    return PullRequest(
        topic=BORDERS,
        queue_id=queue_id,
        queue_offset=0,
        max_count=1,
        consumer_group=GROUP,
        suspend_timeout_ms=POLL_MS,
    )
