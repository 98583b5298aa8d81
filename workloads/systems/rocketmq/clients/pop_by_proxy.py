"""The workload `pop` by RocketMQ's second API: through proxies, over gRPC.

Messages go to whichever queue the proxy chooses. What a proxy does not say for certain may have happened.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, OUTCOME_UNKNOWN, ErrorCode, OperationError
from harness.operation import Operation
from system_under_test.grpc.client import GrpcClient
from system_under_test.grpc.errors import GrpcError, StreamEnded
from system_under_test.grpc.protobuf import MalformedMessage
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    Broker,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ClientType,
    Code,
    Duration,
    MessageQueue,
    MessageType,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    Status,
    Subscription,
    SubscriptionEntry,
    SystemProperties,
    TelemetryCommand,
    UserMessage,
)
from system_under_test.runtime.host import ConnectFailed
from system_under_test.storage.message import encode_properties
from workloads.systems.rocketmq.clients.borders import padded
from workloads.systems.rocketmq.clients.connect import request_timeout_s
from workloads.systems.rocketmq.clients.pop import (
    BATCH,
    GROUP,
    POLL_MS,
    POLL_SHARE,
    PopWorkloadClient,
    message_of,
    not_held,
)
from workloads.systems.rocketmq.errors import of_status
from workloads.systems.rocketmq.settings import PROXY_PORT, RocketmqSettings, proxy_names

ANY_QUEUE = -1
_GROUP = Resource(name=GROUP)
VANISHING_SHARE = 0.1
"""Share of the pops soon after a send at which the client vanishes, where values are bordering: in the end nothing is
sent, and nobody vanishes."""
SOON_NS = 2_000_000_000


class PopByProxyClient(PopWorkloadClient):
    """Each process asks one proxy until that fails, then the next one."""

    def __init__(self, host: Any, settings: RocketmqSettings, process: int) -> None:
        super().__init__(host, settings)
        self._proxies = proxy_names(settings)
        self._turn = process
        self._group_turn = process
        self._timeout_s = request_timeout_s(settings)
        self._grpc = GrpcClient(host, self._timeout_s)
        self._metadata = {"x-mq-client-id": f"{host.name}@{process}"}
        self._handles: dict[int, str] = {}
        self._settings = settings
        self._vanished: list[GrpcClient] = []
        self._sent_ns: int | None = None

    async def close(self) -> None:
        self._grpc.close()
        await super().close()

    async def _send(self, operation: Operation) -> Operation:
        number = message_of(operation)
        self._sent_ns = self._host.clock.monotonic_ns()
        system = SystemProperties(message_id=f"message-{number}", message_type=MessageType.NORMAL)
        message = UserMessage(topic=Resource(name=self._topic), body=self._body(number), system_properties=system)
        (answer,) = await self._ask("SendMessage", SendMessageRequest(messages=[message]), SendMessageResponse)
        self._require_ok(answer.status)
        return operation._replace(type="ok", node=self._proxy)

    def _body(self, number: int) -> bytes:
        body = b"%d" % number
        if self._settings.values == "ordinary":
            return body
        properties = encode_properties({"UNIQ_KEY": f"message-{number}"}).decode()
        return padded(body, self._topic, properties, self._settings, self._host.random)

    async def _pop(self, operation: Operation) -> Operation:
        assert operation.value is not None
        if operation.f == "pop" and self._may_vanish() and self._host.random.random() < VANISHING_SHARE:
            await self._vanish()
        invisible_ms = operation.value["invisible_ms"]
        waits = operation.f == "pop" and self._host.random.random() < POLL_SHARE
        deliveries: list[dict[str, int]] = []
        for _ in self._groups if operation.f == "drain" else self._groups[:1]:
            deliveries = await self._received(invisible_ms, POLL_MS if waits else 0)
            if deliveries:
                break
        return operation._replace(type="ok", value={**operation.value, "deliveries": deliveries}, node=self._proxy)

    def _may_vanish(self) -> bool:
        if self._settings.values == "ordinary" or self._sent_ns is None:
            return False
        return bool(self._host.clock.monotonic_ns() < self._sent_ns + SOON_NS)

    async def _vanish(self) -> None:
        """As a client that takes messages for as long as it lives, and then is heard of no more. Raises
        OperationError: what it took, if anything, nobody knows."""
        grpc = GrpcClient(self._host, self._timeout_s)
        self._vanished.append(grpc)
        metadata = {"x-mq-client-id": f"{self._host.name}@vanished-{self._host.random.getrandbits(32):08x}"}
        wanted = Subscription(group=_GROUP, subscriptions=[SubscriptionEntry(topic=Resource(name=self._topic))])
        settings = Settings(client_type=ClientType.PUSH_CONSUMER, subscription=wanted)
        self._group_turn += 1
        request = ReceiveMessageRequest(
            group=_GROUP,
            message_queue=MessageQueue(
                topic=Resource(name=self._topic),
                id=ANY_QUEUE,
                broker=Broker(name=self._groups[self._group_turn % len(self._groups)]),
            ),
            batch_size=BATCH,
            auto_renew=True,
        )
        address = f"{self._proxy}:{PROXY_PORT}"
        with suppress(ConnectFailed, TimeoutError, GrpcError, StreamEnded):
            stream = await grpc.open(address, f"{SERVICE}Telemetry", metadata)
            await stream.send(TelemetryCommand(settings=settings).encode())
            asked = request.encode()
            await grpc.call_for_all(address, f"{SERVICE}ReceiveMessage", asked, self._timeout_s, metadata)
        raise OperationError(OUTCOME_UNKNOWN, "the client has vanished", node=self._proxy)

    async def _received(self, invisible_ms: int, poll_ms: int) -> list[dict[str, int]]:
        """Of the next group of brokers."""
        self._group_turn += 1
        broker = Broker(name=self._groups[self._group_turn % len(self._groups)])
        request = ReceiveMessageRequest(
            group=_GROUP,
            message_queue=MessageQueue(topic=Resource(name=self._topic), id=ANY_QUEUE, broker=broker),
            batch_size=BATCH,
            invisible_duration=_duration(invisible_ms),
            long_polling_timeout=_duration(poll_ms),
        )
        answers = await self._ask("ReceiveMessage", request, ReceiveMessageResponse)
        status = next((answer.status for answer in answers if answer.status is not None), None)
        if status is None or status.code != Code.MESSAGE_NOT_FOUND:
            self._require_ok(status)
        deliveries = []
        for answer in answers:
            if answer.message is not None and answer.message.system_properties is not None:
                number, system = int(answer.message.body), answer.message.system_properties
                self._handles[number] = system.receipt_handle or ""
                deliveries.append({"message": number, "times": (system.delivery_attempt or 1) - 1})
        return deliveries

    async def _ack(self, operation: Operation) -> Operation:
        number = message_of(operation)
        entry = AckMessageEntry(message_id=f"message-{number}", receipt_handle=self._handle_of(number))
        request = AckMessageRequest(group=_GROUP, topic=Resource(name=self._topic), entries=[entry])
        (answer,) = await self._ask("AckMessage", request, AckMessageResponse)
        self._require_ok(answer.status)
        return operation._replace(type="ok", node=self._proxy)

    async def _change(self, operation: Operation) -> Operation:
        assert operation.value is not None
        number = message_of(operation)
        request = ChangeInvisibleDurationRequest(
            group=_GROUP,
            topic=Resource(name=self._topic),
            receipt_handle=self._handle_of(number),
            invisible_duration=_duration(operation.value["invisible_ms"]),
            message_id=f"message-{number}",
        )
        (answer,) = await self._ask("ChangeInvisibleDuration", request, ChangeInvisibleDurationResponse)
        self._require_ok(answer.status)
        self._handles[number] = answer.receipt_handle
        return operation._replace(type="ok")

    def _handle_of(self, number: int) -> str:
        handle = self._handles.get(number)
        if handle is None:
            raise not_held()
        return handle

    @property
    def _proxy(self) -> str:
        return self._proxies[self._turn % len(self._proxies)]

    async def _ask(self, method: str, request: Any, answer: Any) -> list[Any]:
        """Raises OperationError."""
        proxy = self._proxy
        try:
            datas = await self._grpc.call_for_all(
                f"{proxy}:{PROXY_PORT}", SERVICE + method, request.encode(), self._timeout_s, self._metadata
            )
            return [answer.decode(data) for data in datas]
        except ConnectFailed as error:
            raise self._failed(CONNECT_FAILED, str(error), proxy) from error
        except TimeoutError as error:
            raise self._failed(CLIENT_TIMEOUT, str(error), proxy) from error
        except (GrpcError, StreamEnded, MalformedMessage) as error:
            raise self._failed(OUTCOME_UNKNOWN, str(error), proxy) from error

    def _failed(self, code: ErrorCode, detail: str, proxy: str) -> OperationError:
        self._turn += 1
        return OperationError(code, detail, node=proxy)

    def _require_ok(self, status: Status | None) -> None:
        """Raises OperationError."""
        if status is None or status.code != Code.OK:
            code = OUTCOME_UNKNOWN if status is None else of_status(status.code)
            raise OperationError(code, "no status" if status is None else status.message, node=self._proxy)


def _duration(time_ms: int) -> Duration:
    return Duration(seconds=time_ms // 1_000, nanos=time_ms % 1_000 * 1_000_000)
