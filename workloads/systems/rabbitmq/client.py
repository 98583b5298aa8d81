"""A client of RabbitMQ at one node: it publishes with confirms, and takes single messages that it acknowledges.

A message counts as delivered whatever comes of its acknowledgement, which RabbitMQ does not answer: where it is lost,
the message comes again, so delivery is at least once. In the end all that is left is taken and, as the channel is
closed without an acknowledgement, put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from harness.errors import CONNECT_FAILED, OperationError
from harness.operation import Operation
from workloads.systems.rabbitmq.connection import ANSWER_TIMEOUT_S, answered, channel_at, ended, opened_channel
from workloads.systems.rabbitmq.queues import queue_name

TAKES_WITHIN_S, ACKNOWLEDGES_WITHIN_S, ACKNOWLEDGED_WITHIN_S = 3.0, 3.5, 1.0
"""So long after its beginning a dequeue still takes a message, and acknowledges it:
the harness gives an operation up after five seconds, and what was acknowledged and never shown would count as lost."""


class RabbitmqClient:
    def __init__(self, host: Any, node: str) -> None:
        self._host, self._node = host, node
        self._connection: Any = None
        self._channel: Any = None

    async def open(self) -> None:
        try:
            self._connection, self._channel = await channel_at(self._host, self._node)
        except OperationError as error:
            raise OperationError(CONNECT_FAILED, error.detail, node=self._node) from error

    async def close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            await ended(connection)

    async def invoke(self, operation: Operation) -> Operation:
        began_ns = self._host.clock.monotonic_ns()
        if self._channel is None:
            await self.open()
        try:
            if operation.f == "dequeue":
                value = await self._dequeued(operation, began_ns)
            else:
                value = await answered(self._carried_out(operation), ANSWER_TIMEOUT_S)
        except OperationError as error:
            await self.close()
            raise OperationError(error.error, error.detail, node=self._node) from error
        return operation._replace(type="ok", value=value, node=self._node)

    async def _carried_out(self, operation: Operation) -> Mapping[str, Any]:
        """The value of the completion."""
        import aio_pika

        queue, value = queue_name(operation.key or ""), dict(operation.value or {})
        if operation.f == "enqueue":
            body = aio_pika.Message(b"%d" % value["value"], delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await self._channel.default_exchange.publish(body, queue, mandatory=True)
        else:
            value["values"] = await self._left(queue)
        return value

    async def _dequeued(self, operation: Operation, began_ns: int) -> Mapping[str, Any]:
        """The value of the completion."""
        queue = await self._channel.get_queue(queue_name(operation.key or ""), ensure=False)
        message = await answered(queue.get(no_ack=False, fail=False), TAKES_WITHIN_S)
        if message is None:
            return {**(operation.value or {}), "values": []}
        if self._host.clock.monotonic_ns() - began_ns < ACKNOWLEDGES_WITHIN_S * 1e9:
            with suppress(OperationError):
                await answered(message.ack(), ACKNOWLEDGED_WITHIN_S)
        return {**(operation.value or {}), "values": [int(message.body)]}

    async def _left(self, name: str) -> list[int]:
        """All that is there, which is put back."""
        channel = await opened_channel(self._connection)
        try:
            queue = await channel.get_queue(name, ensure=False)
            found = []
            while (message := await queue.get(no_ack=False, fail=False)) is not None:
                found.append(int(message.body))
            return found
        finally:
            await channel.close()
