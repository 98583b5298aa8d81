"""The log: at most one request an invocation that can take effect."""

from __future__ import annotations

from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.rocketmq.client.errors import ClientError
from workloads.systems.rocketmq.clients.connect import carry_out, message_client
from workloads.systems.rocketmq.settings import BROKER_PORT, TOPIC, RocketmqSettings, broker_names, node_of

BATCH = 32
SLAVE_READ_SHARE = 0.2
"""Share of polls that ask a random replica instead of the master."""


class LogClient:
    """Sends, and polls as one consumer that goes on where its group's committed offset says."""

    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._client = message_client(host, settings)
        self._brokers = broker_names(settings)
        self._group = f"consumers-{host.name}"
        self._positions: dict[str, int] = {}
        self._committed: dict[str, int] = {}
        self._requests = {
            "send": self._send,
            "poll": self._poll,
            "final-poll": self._final_poll,
            "caught-up": self._caught_up,
        }

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        return await carry_out(self._requests, operation)

    async def _send(self, operation: Operation) -> Operation:
        assert operation.value is not None
        message: int = operation.value["message"]
        sent = await self._client.send(TOPIC, queue_of(operation), b"%d" % message)
        value = {"message": message, "offset": sent.queue_offset, "messages": None}
        return operation._replace(type="ok", value=value, node=node_of(sent.broker))

    async def _poll(self, operation: Operation) -> Operation:
        queue = queue_of(operation)
        key = str(queue)
        position = self._positions.get(key)
        resumed = None
        if position is None:
            resumed = position = await self._client.query_offset(self._group, TOPIC, queue) or 0
        elif position != self._committed.get(key):
            await self._commit(queue, position)
        if self._host.random.random() < SLAVE_READ_SHARE:
            replica = f"{self._host.random.choice(self._brokers)}:{BROKER_PORT}"
            pulled = await self._client.pull(TOPIC, queue, position, BATCH, self._group, replica)
        else:
            pulled = await self._client.consume(TOPIC, queue, position, BATCH, self._group)
        # What lies before the queue's beginning has expired; a queue that ends earlier may only lag.
        position = pulled.messages[-1][0] + 1 if pulled.messages else max(position, pulled.next_offset)
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
        queue, replica = queue_of(operation), f"{operation.node}:{BROKER_PORT}"
        pulled = await self._client.pull(TOPIC, queue, position, BATCH, "final", replica)
        while not pulled.messages and pulled.min_offset > position:
            # It begins later at this replica.
            position = pulled.min_offset
            pulled = await self._client.pull(TOPIC, queue, position, BATCH, "final", replica)
        if pulled.messages:
            position = pulled.messages[-1][0] + 1
        return operation._replace(type="ok", value=_polled(position, pulled.messages))

    async def _caught_up(self, operation: Operation) -> Operation:
        """Ok only if the position is the end of the queue at the master and at this replica alike."""
        assert operation.value is not None and operation.node is not None
        queue, position = queue_of(operation), operation.value["offset"]
        master = await self._client.pull(TOPIC, queue, position, 1, "final", None)
        replica = await self._client.pull(TOPIC, queue, position, 1, "final", f"{operation.node}:{BROKER_PORT}")
        if master.messages or replica.messages or master.max_offset != position or replica.max_offset != position:
            raise OperationError(
                PRECONDITION_FAILED,
                f"read to {position}, the master ends at {master.max_offset}, {operation.node} at {replica.max_offset}",
            )
        return operation._replace(type="ok")


def queue_of(operation: Operation) -> int:
    assert operation.key is not None
    return int(operation.key.rpartition("/")[2])


def _polled(position: int, messages: tuple[tuple[int, bytes], ...]) -> dict[str, Any]:
    return {
        "message": None,
        "offset": position,
        "messages": [{"offset": offset, "message": int(body)} for offset, body in messages],
    }
