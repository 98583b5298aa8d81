"""A queue of the topic as a queue: what is enqueued is sent, and all clients dequeue as one group of consumers.

A dequeue asks where the group has got to, takes what comes next there, and commits it. The messages count as delivered
also where the commit fails, and two clients at once get the same ones: so delivery is at least once. It ends within
the harness's time-out of an operation even where each of its requests takes as long as it may, for messages that were
committed and never shown would be lost.
"""

from __future__ import annotations

from typing import Any

from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from workloads.systems.rocketmq.clients.connect import carry_out, message_client
from workloads.systems.rocketmq.clients.queues import Queues
from workloads.systems.rocketmq.clients.slaves import is_parted, replication_status
from workloads.systems.rocketmq.settings import (
    BROKER_PORT,
    BrokerGroup,
    RocketmqSettings,
    addresses,
    node_of,
    topic_of,
)

REQUEST_TIMEOUT_S = 1.5
"""A dequeue makes three requests."""
GROUP = "dequeuers"
BATCH = 8
DRAIN_BATCH = 1024


class QueueClient:
    def __init__(self, host: Any, settings: RocketmqSettings, *, workload: str = "queue", batch: int = BATCH) -> None:
        """`workload`: whose topic it is; `batch`: so many messages a dequeue takes at most."""
        self._batch = batch
        self.topic = topic_of(settings, workload)
        self.messages = message_client(host, settings, REQUEST_TIMEOUT_S)
        self.queues = Queues(settings)
        self._has_slaves = settings.has_slaves
        self._requests = {"enqueue": self._enqueue, "dequeue": self.dequeue, "drain": self.drain}

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self.messages.close()

    async def invoke(self, operation: Operation) -> Operation:
        return await carry_out(self._requests, operation)

    async def _enqueue(self, operation: Operation) -> Operation:
        assert operation.value is not None
        group, queue = self.queues.of(operation)
        body = b"%d" % operation.value["value"]
        sent = await self.messages.send(self.topic, queue, body, broker_name=group.name)
        return operation._replace(type="ok", node=node_of(sent.broker))

    async def dequeue(self, operation: Operation) -> Operation:
        """What comes next. Raises ClientError."""
        group, queue = self.queues.of(operation)
        position = await self.messages.query_offset(GROUP, self.topic, queue, broker_name=group.name) or 0
        pulled = await self.messages.pull(self.topic, queue, position, self._batch, GROUP, broker_name=group.name)
        if pulled.messages:
            await self._commit(group.name, queue, pulled.messages[-1][0] + 1)
        elif pulled.next_offset > position:
            # What lies before the queue's beginning has expired.
            await self._commit(group.name, queue, pulled.next_offset)
        return operation._replace(type="ok", value=_delivered(operation, pulled.messages), node=node_of(pulled.broker))

    async def _commit(self, broker_name: str, queue: int, position: int) -> None:
        """One that fails means redelivery."""
        try:
            await self.messages.update_offset(GROUP, self.topic, queue, position, broker_name=broker_name)
        except ClientError:
            return

    async def drain(self, operation: Operation) -> Operation:
        """All from the group's offset to the end. Nothing is committed: a drain that fails loses nothing.

        What a slave has that is parted from its master counts as well, for a human will find it there.
        """
        group, queue = self.queues.of(operation)
        parted = await self._of_parted_slaves(group, queue) if self._has_slaves else ()
        position = await self.messages.query_offset(GROUP, self.topic, queue, broker_name=group.name) or 0
        messages: tuple[tuple[int, bytes], ...] = ()
        while True:
            pulled = await self.messages.pull(self.topic, queue, position, DRAIN_BATCH, GROUP, broker_name=group.name)
            if not pulled.messages and position >= pulled.max_offset:
                delivered = _delivered(operation, (*parted, *messages))
                return operation._replace(type="ok", value=delivered, node=node_of(pulled.broker))
            messages += pulled.messages
            position = pulled.messages[-1][0] + 1 if pulled.messages else pulled.next_offset

    async def _of_parted_slaves(self, group: BrokerGroup, queue: int) -> tuple[tuple[int, bytes], ...]:
        messages: tuple[tuple[int, bytes], ...] = ()
        for slave in addresses(list(group.brokers[1:]), BROKER_PORT):
            if not is_parted(await replication_status(self.messages, slave)):
                continue
            position = 0
            while True:
                pulled = await self.messages.pull(self.topic, queue, position, DRAIN_BATCH, GROUP, slave)
                if not pulled.messages and pulled.min_offset <= position:
                    break
                messages += pulled.messages
                position = pulled.messages[-1][0] + 1 if pulled.messages else pulled.min_offset
        return messages


def _delivered(operation: Operation, messages: tuple[tuple[int, bytes], ...]) -> dict[str, Any]:
    """With the places where they stood, if the workload has room for that."""
    assert operation.value is not None
    values = {"value": None, "values": [int(body.split()[0]) for _, body in messages]}
    places = {"places": [offset for offset, _ in messages]} if "places" in operation.value else {}
    return {**operation.value, **values, **places}
