"""Clients of RocketMQ, one for each workload: at most one request an invocation, errors by what they say of it."""

from __future__ import annotations

from typing import Any

from harness.errors import OUTCOME_UNKNOWN, PRECONDITION_FAILED, SERVICE_NOT_AVAILABLE, OperationError, UsageError
from harness.operation import Operation
from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.client.key_value_client import KeyValueClient
from system_under_test.rocketmq.client.message_client import MessageClient
from workloads.systems.rocketmq.errors import CODES
from workloads.systems.rocketmq.settings import (
    BROKER_PORT,
    CONTROLLER_PORT,
    NAMESERVER_PORT,
    TOPIC,
    RocketmqSettings,
    addresses,
    broker_names,
    controller_names,
    node_of,
)

REQUEST_TIMEOUT_S = 3.0
BATCH = 32
SLAVE_READ_SHARE = 0.2
"""Share of polls that ask a random replica instead of the master."""


def message_client(host: Any, settings: RocketmqSettings) -> MessageClient:
    return MessageClient(host, addresses(controller_names(settings), NAMESERVER_PORT), REQUEST_TIMEOUT_S)


def operation_error(error: ClientError) -> OperationError:
    code = CODES.get(error.code)
    if code is None or code.definite != error.definite:
        code = SERVICE_NOT_AVAILABLE if error.definite else OUTCOME_UNKNOWN
    return OperationError(code, error.detail, node=node_of(error.node) if error.node else None)


class LogClient:
    """Sends, and polls as one consumer that goes on where its group's committed offset says."""

    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._client = message_client(host, settings)
        self._brokers = broker_names(settings)
        self._group = f"consumers-{host.name}"
        self._positions: dict[str, int] = {}
        self._committed: dict[str, int] = {}

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        try:
            if operation.f == "send":
                return await self._send(operation)
            if operation.f == "poll":
                return await self._poll(operation)
            if operation.f == "final-poll":
                return await self._final_poll(operation)
            if operation.f == "caught-up":
                return await self._caught_up(operation)
        except ClientError as error:
            raise operation_error(error) from error
        raise UsageError(f"the log client knows send, poll, final-poll and caught-up, not {operation.f!r}")

    async def _send(self, operation: Operation) -> Operation:
        assert operation.value is not None
        message: int = operation.value["message"]
        sent = await self._client.send(TOPIC, _queue(operation), b"%d" % message)
        value = {"message": message, "offset": sent.queue_offset, "messages": None}
        return operation._replace(type="ok", value=value, node=node_of(sent.broker))

    async def _poll(self, operation: Operation) -> Operation:
        queue = _queue(operation)
        key = str(queue)
        position = self._positions.get(key)
        resumed = None
        if position is None:
            resumed = position = await self._client.query_offset(self._group, TOPIC, queue) or 0
        elif position != self._committed.get(key):
            await self._commit(queue, position)
        address = None
        if self._host.random.random() < SLAVE_READ_SHARE:
            address = f"{self._host.random.choice(self._brokers)}:{BROKER_PORT}"
        pulled = await self._client.pull(TOPIC, queue, position, BATCH, self._group, address)
        if pulled.messages:
            position = pulled.messages[-1][0] + 1
        self._positions[key] = position
        value = _polled(position, pulled.messages) | {"group": self._group, "resumed": resumed}
        return operation._replace(type="ok", value=value, node=node_of(pulled.broker))

    async def _commit(self, queue: int, position: int) -> None:
        """What earlier polls have returned: nobody may ever see what this one will.

        A commit that fails means redelivery, which is legal.
        """
        try:
            await self._client.update_offset(self._group, TOPIC, queue, position)
        except ClientError:
            return
        self._committed[str(queue)] = position

    async def _final_poll(self, operation: Operation) -> Operation:
        assert operation.value is not None and operation.node is not None
        position: int = operation.value["offset"]
        pulled = await self._client.pull(
            TOPIC, _queue(operation), position, BATCH, "final", f"{operation.node}:{BROKER_PORT}"
        )
        if pulled.messages:
            position = pulled.messages[-1][0] + 1
        return operation._replace(type="ok", value=_polled(position, pulled.messages))

    async def _caught_up(self, operation: Operation) -> Operation:
        """Ok only if the position is the end of the queue at the master and at this replica alike."""
        assert operation.value is not None and operation.node is not None
        queue, position = _queue(operation), operation.value["offset"]
        master = await self._client.pull(TOPIC, queue, position, 1, "final", None)
        replica = await self._client.pull(TOPIC, queue, position, 1, "final", f"{operation.node}:{BROKER_PORT}")
        if master.messages or replica.messages or master.max_offset != position or replica.max_offset != position:
            raise OperationError(
                PRECONDITION_FAILED,
                f"read to {position}, the master ends at {master.max_offset}, {operation.node} at {replica.max_offset}",
            )
        return operation._replace(type="ok")


def _queue(operation: Operation) -> int:
    assert operation.key is not None
    return int(operation.key.rpartition("/")[2])


def _polled(position: int, messages: tuple[tuple[int, bytes], ...]) -> dict[str, Any]:
    return {
        "message": None,
        "offset": position,
        "messages": [{"offset": offset, "message": int(body)} for offset, body in messages],
    }


class RegisterClient:
    """A register by key in the controllers' store. Each process keeps to one controller unless told of the leader."""

    def __init__(self, host: Any, settings: RocketmqSettings, process: int) -> None:
        names = controller_names(settings)
        prefer = f"{names[process % len(names)]}:{CONTROLLER_PORT}"
        self._client = KeyValueClient(host, addresses(names, CONTROLLER_PORT), REQUEST_TIMEOUT_S, prefer=prefer)

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        assert operation.key is not None and operation.value is not None
        value = operation.value
        try:
            if operation.f == "read":
                read = await self._client.get(operation.key)
                return operation._replace(type="ok", value={"value": read, "expected": None})
            if operation.f == "write":
                await self._client.put(operation.key, value["value"])
                return operation._replace(type="ok")
            if operation.f == "cas":
                await self._client.compare_and_set(operation.key, value["expected"], value["value"])
                return operation._replace(type="ok")
        except ClientError as error:
            raise operation_error(error) from error
        raise UsageError(f"the register client knows read, write and cas, not {operation.f!r}")
