"""A lock of RabbitMQ, as its users are tempted to make one: a queue with one message, held by its consumer.

To acquire is to get the message without acknowledging it, to release is to give it back. RabbitMQ takes it back by
itself where the holder's channel, its connection or its node is gone, or seems to be, and hands it to the next, while
the holder may not know yet (https://www.rabbitmq.com/docs/3.10/confirms, on automatic requeueing). There is no token.
"""

from __future__ import annotations

from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from workloads.systems.rabbitmq.connection import ANSWER_TIMEOUT_S, answered, channel_at, ended, opened_channel
from workloads.systems.rabbitmq.queues import Kind, arguments_of

TAKES_WITHIN_S = 3.0
"""The harness gives an operation up after five seconds: what is got later than that nobody knows to be held."""


def lock_name(key: str) -> str:
    """Of the queue that is the lock with this key."""
    return f"storm.lock.{key}"


async def make_lock(connection: Any, key: str, kind: Kind) -> None:
    """The queue and its message, unless it is there already: then it has one, or somebody holds it.

    Raises OperationError; the message is sent once at most.
    """
    import aio_pika

    channel = await answered(opened_channel(connection), ANSWER_TIMEOUT_S)
    if await _is_there(channel, key):
        return
    channel = await answered(opened_channel(connection), ANSWER_TIMEOUT_S)
    made = channel.declare_queue(lock_name(key), durable=True, arguments=arguments_of(kind))
    await answered(made, ANSWER_TIMEOUT_S)
    message = aio_pika.Message(b"lock", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
    sent = channel.default_exchange.publish(message, lock_name(key), mandatory=True)
    await answered(sent, ANSWER_TIMEOUT_S)


async def _is_there(channel: Any, key: str) -> bool:
    """Where it is not, the channel is closed. Raises OperationError."""
    from aio_pika.exceptions import ChannelNotFoundEntity

    async def asked() -> bool:
        try:
            await channel.declare_queue(lock_name(key), passive=True)
        except ChannelNotFoundEntity:
            return False
        return True

    return await answered(asked(), ANSWER_TIMEOUT_S)


class RabbitmqLockClient:
    """Client of one process, which holds one lock at most."""

    def __init__(self, host: Any, node: str) -> None:
        self._host, self._node = host, node
        self._connection: Any = None
        self._channel: Any = None
        self._held: Any = None
        """The message that is the lock it holds."""

    async def open(self) -> None:
        self._connection, self._channel = await channel_at(self._host, self._node)

    async def close(self) -> None:
        """What it holds is left to RabbitMQ to take back, as from a process which died."""
        connection, self._connection, self._channel, self._held = self._connection, None, None, None
        if connection is not None:
            await ended(connection)

    async def invoke(self, operation: Operation) -> Operation:
        if self._channel is None:
            await self.open()
        try:
            if operation.f == "acquire":
                await self._acquire(operation.key or "")
            else:
                await self._release()
        except OperationError as error:
            if error.error is not PRECONDITION_FAILED:
                await self.close()
            raise OperationError(error.error, error.detail, node=self._node) from error
        return operation._replace(type="ok", node=self._node)

    async def _acquire(self, key: str) -> None:
        """Raises OperationError."""
        queue = await self._channel.get_queue(lock_name(key), ensure=False)
        self._held = await answered(queue.get(no_ack=False, fail=False), TAKES_WITHIN_S)
        if self._held is None:
            raise OperationError(PRECONDITION_FAILED, "somebody else holds it")

    async def _release(self) -> None:
        """RabbitMQ does not answer. A lock that went with its connection is held no more. Raises OperationError."""
        held, self._held = self._held, None
        if held is not None:
            await answered(held.nack(requeue=True), ANSWER_TIMEOUT_S)
