"""The log: at most one request an invocation that can take effect."""

from __future__ import annotations

from typing import Any, TypedDict

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.message_client import PullResult
from system_under_test.rocketmq.message_batch import BatchedMessage
from system_under_test.storage.message import encode_properties
from workloads.systems.rocketmq.clients.connect import carry_out, message_client, waiting_in_the_end
from workloads.systems.rocketmq.clients.queues import Queue, Queues
from workloads.systems.rocketmq.clients.slaves import is_parted, replication_status
from workloads.systems.rocketmq.settings import BROKER_PORT, RocketmqSettings, node_of, topic_of

BATCH = 32
FILTERED_BATCH = 5
"""Few, so that pages end where more is to come."""
BY_TAG_SHARE = 0.5
"""Share of filtered polls that name the tag; the others say the same in SQL92."""
SLAVE_READ_SHARE = 0.2
"""Share of polls that ask a random replica instead of the master."""


class Subscription(TypedDict):
    """What a pull says of the messages it wants."""

    subscription: str
    expression_type: str


EVERYTHING: Subscription = {"subscription": "*", "expression_type": "TAG"}


class LogClient:
    """Sends, and polls as one consumer that goes on where its group's committed offset says."""

    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._client = message_client(host, settings)
        self._topic = topic_of(settings, "log")
        self._queues = Queues(settings)
        self._reads_slaves = settings.has_slaves
        self._group = f"consumers-{host.name}"
        self._positions: dict[str, int] = {}
        self._committed: dict[str, int] = {}
        self._requests = {
            "send": self._send,
            "poll": self._poll,
            "final-poll": self._final_poll,
            "caught-up": self._caught_up,
            "send-batch": self._send_batch,
            "filtered-poll": self._filtered_poll,
            "final-filtered-poll": self._final_filtered_poll,
            "final-look-up": self._look_up,
        }

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        waiting_in_the_end(self._client, operation)
        return await carry_out(self._requests, operation)

    async def _send(self, operation: Operation) -> Operation:
        assert operation.value is not None
        message: int = operation.value["message"]
        group, queue = self._queues.of(operation)
        tag = operation.value.get("tag")
        properties = "" if tag is None else encode_properties(_properties(message, tag)).decode()
        sent = await self._client.send(
            self._topic, queue, b"%d" % message, properties=properties, broker_name=group.name
        )
        value = {**operation.value, "offset": sent.queue_offset}
        return operation._replace(type="ok", value=value, node=node_of(sent.broker))

    async def _send_batch(self, operation: Operation) -> Operation:
        assert operation.value is not None
        group, queue = self._queues.of(operation)
        parts, tags = operation.value["txn"], operation.value.get("tag")
        batch = [
            BatchedMessage(b"%d" % message, {} if tags is None else _properties(message, message % tags))
            for message in (part["message"] for part in parts)
        ]
        sent = await self._client.send_batch(self._topic, queue, batch, broker_name=group.name)
        placed = [{**part, "offset": sent.queue_offset + place} for place, part in enumerate(parts)]
        value = {**operation.value, "txn": placed}
        return operation._replace(type="ok", value=value, node=node_of(sent.broker))

    async def _poll(self, operation: Operation) -> Operation:
        assert operation.key is not None
        key, queue = operation.key, self._queues.of(operation)
        position = self._positions.get(key)
        resumed = None
        if position is None:
            committed = await self._client.query_offset(
                self._group, self._topic, queue.queue_id, broker_name=queue.group.name
            )
            resumed = position = committed or 0
        elif position != self._committed.get(key):
            await self._commit(queue, position, self._group, key)
        pulled = await self._pull(queue, position, self._group, BATCH)
        # What lies before the queue's beginning has expired; a queue that ends earlier may only lag.
        position = pulled.messages[-1][0] + 1 if pulled.messages else max(position, pulled.next_offset)
        self._positions[key] = position
        value = polled(position, pulled.messages) | {"group": self._group, "resumed": resumed}
        return operation._replace(type="ok", value=value, node=node_of(pulled.broker))

    async def _pull(
        self, queue: Queue, position: int, group: str, most: int, subscription: Subscription = EVERYTHING
    ) -> PullResult:
        """From whom the client is sent to, or from any replica."""
        name, queue_id = queue.group.name, queue.queue_id
        if self._host.random.random() < SLAVE_READ_SHARE:
            replica = f"{self._host.random.choice(queue.group.brokers)}:{BROKER_PORT}"
            return await self._client.pull(
                self._topic, queue_id, position, most, group, replica, broker_name=name, **subscription
            )
        return await self._client.consume(
            self._topic, queue_id, position, most, group, broker_name=name, **subscription
        )

    async def _commit(self, queue: Queue, position: int, group: str, key: str) -> None:
        """What earlier polls have returned: nobody may ever see what this one will.

        A commit that fails means redelivery, which is legal.
        """
        try:
            await self._client.update_offset(group, self._topic, queue.queue_id, position, broker_name=queue.group.name)
        except ClientError:
            return
        self._committed[key] = position

    async def _filtered_poll(self, operation: Operation) -> Operation:
        """The next messages of one tag, for a consumer that begins each queue and tag where its group has come to."""
        assert operation.value is not None
        tag, queue = operation.value["tag"], self._queues.of(operation)
        group = f"{self._group}-tag-{tag}"
        key = f"{operation.key}/{tag}"
        position = self._positions.get(key)
        if position is None:
            committed = await self._client.query_offset(
                group, self._topic, queue.queue_id, broker_name=queue.group.name
            )
            position = committed or 0
        elif position != self._committed.get(key):
            await self._commit(queue, position, group, key)
        pulled = await self._pull(queue, position, group, FILTERED_BATCH, self._by_tag(tag))
        reached = self._positions[key] = max(position, pulled.next_offset)
        value = {**operation.value, **polled(reached, pulled.messages), "resumed": position, "group": group}
        return operation._replace(type="ok", value=value, node=node_of(pulled.broker))

    async def _final_filtered_poll(self, operation: Operation) -> Operation:
        assert operation.value is not None and operation.node is not None
        position: int = operation.value["offset"]
        queue, tag = self._queues.of(operation), operation.value["tag"]
        messages: tuple[tuple[int, bytes], ...] = ()
        reached = position
        if operation.node in queue.group.brokers:
            address = f"{operation.node}:{BROKER_PORT}"
            pulled = await self._client.pull(
                self._topic, queue.queue_id, position, BATCH, "final", address, **self._by_tag(tag)
            )
            if not pulled.messages:
                # It may begin later at this replica, and passes over nothing that it does not have.
                position = max(position, pulled.min_offset)
            reached, messages = max(position, pulled.next_offset), pulled.messages
        value = {**operation.value, **polled(reached, messages), "resumed": position, "group": "final"}
        return operation._replace(type="ok", value=value)

    def _by_tag(self, tag: int) -> Subscription:
        """By the tag itself, or by a filter that says the same."""
        name = tag_name(tag)
        if self._host.random.random() < BY_TAG_SHARE:
            return {"subscription": name, "expression_type": "TAG"}
        return {"subscription": f"TAGS = '{name}' AND KEYS IS NOT NULL", "expression_type": "SQL92"}

    async def _look_up(self, operation: Operation) -> Operation:
        assert operation.value is not None and operation.node is not None
        message: int = operation.value["message"]
        found = await self._client.find(self._topic, key_of(message), f"{operation.node}:{BROKER_PORT}")
        messages = [{"offset": offset, "message": int(body)} for offset, body in found]
        return operation._replace(type="ok", value={**operation.value, "messages": messages})

    async def _final_poll(self, operation: Operation) -> Operation:
        assert operation.value is not None and operation.node is not None
        position: int = operation.value["offset"]
        queue = self._queues.of(operation)
        if operation.node not in queue.group.brokers:
            return operation._replace(type="ok", value=polled(position, ()))
        replica = f"{operation.node}:{BROKER_PORT}"
        pulled = await self._client.pull(self._topic, queue.queue_id, position, BATCH, "final", replica)
        while not pulled.messages and pulled.min_offset > position:
            # It begins later at this replica.
            position = pulled.min_offset
            pulled = await self._client.pull(self._topic, queue.queue_id, position, BATCH, "final", replica)
        if pulled.messages:
            position = pulled.messages[-1][0] + 1
        return operation._replace(type="ok", value=polled(position, pulled.messages))

    async def _caught_up(self, operation: Operation) -> Operation:
        """Ok only if the position is the end of the queue at the master and at this replica alike.

        A replica of another group has nothing of the queue; a slave that a human has to bring together with its master
        is read to its own end.
        """
        assert operation.value is not None and operation.node is not None
        queue, position = self._queues.of(operation), operation.value["offset"]
        if operation.node not in queue.group.brokers:
            return operation._replace(type="ok")
        address = f"{operation.node}:{BROKER_PORT}"
        name, queue_id = queue.group.name, queue.queue_id
        if self._reads_slaves and is_parted(await replication_status(self._client, address)):
            own = await self._client.pull(self._topic, queue_id, position, 1, "final", address)
            if not own.messages and own.max_offset == position:
                return operation._replace(type="ok")
        master = await self._client.pull(self._topic, queue_id, position, 1, "final", None, broker_name=name)
        replica = await self._client.pull(self._topic, queue_id, position, 1, "final", address)
        if master.messages or replica.messages or master.max_offset != position or replica.max_offset != position:
            raise OperationError(
                PRECONDITION_FAILED,
                f"read to {position}, the master ends at {master.max_offset}, {operation.node} at {replica.max_offset}",
            )
        return operation._replace(type="ok")


def tag_name(tag: int) -> str:
    return f"tag{tag}"


def key_of(message: int) -> str:
    return f"message-{message}"


def _properties(message: int, tag: int) -> dict[str, str]:
    return {"TAGS": tag_name(tag), "KEYS": key_of(message)}


def polled(position: int, messages: tuple[tuple[int, bytes], ...]) -> dict[str, Any]:
    return {
        "message": None,
        "offset": position,
        "messages": [{"offset": offset, "message": int(body)} for offset, body in messages],
    }
