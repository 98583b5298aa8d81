"""The log on a static topic: its queues are of the whole topic, and administrators among the clients move them.

A send or a poll is at most one request that can take effect; a move is as many as it takes, one after the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.client.logic_queue_client import LogicQueueClient
from system_under_test.rocketmq.client.message_client import PullResult
from system_under_test.rocketmq.client.static_topic_client import StaticTopicClient
from system_under_test.rocketmq.message_batch import BatchedMessage
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment
from system_under_test.rocketmq.static_topic.remapping import CannotMove
from workloads.systems.rocketmq.clients.connect import (
    carry_out,
    message_client,
    request_timeout_s,
    waiting_in_the_end,
)
from workloads.systems.rocketmq.clients.log import BATCH, SLAVE_READ_SHARE, polled
from workloads.systems.rocketmq.clients.slaves import is_parted, replication_status
from workloads.systems.rocketmq.settings import (
    BROKER_PORT,
    TOPIC,
    BrokerGroup,
    RocketmqSettings,
    broker_groups,
    group_of,
    node_of,
)

MISLED_SHARE = 0.1
"""Share of sends that go to a random group of brokers."""


class MovingLogClient:
    """Sends, moves queues, and polls as one consumer that goes on where its group's committed offset says."""

    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._settings = settings
        self._messages = message_client(host, settings)
        self._admin = AdminClient(host, request_timeout_s(settings))
        self._queues = LogicQueueClient(self._messages, self._admin)
        self._topics = StaticTopicClient(self._admin)
        self._group = f"consumers-{host.name}"
        self._positions: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._requests: dict[str, Callable[[Operation], Awaitable[Operation]]] = {
            "send": self._send,
            "send-batch": self._send_batch,
            "poll": self._poll,
            "move": self._move,
            "final-poll": self._final_poll,
            "caught-up": self._caught_up,
            "final-segments": self._segments,
        }

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._messages.close()
        self._admin.close()

    async def invoke(self, operation: Operation) -> Operation:
        waiting_in_the_end(self._messages, operation)
        return await carry_out(self._requests, operation)

    async def _send(self, operation: Operation) -> Operation:
        assert operation.value is not None
        body = b"%d" % operation.value["message"]
        sent = await self._queues.send(TOPIC, _number(operation), body, broker_name=self._misled())
        value = {**operation.value, "offset": sent.queue_offset}
        return operation._replace(type="ok", value=value, node=node_of(sent.broker))

    def _misled(self) -> str | None:
        """Sometimes a client goes by a route that is old: to any group. Only the one that leads takes a message."""
        if self._host.random.random() >= MISLED_SHARE:
            return None
        group: BrokerGroup = self._host.random.choice(broker_groups(self._settings))
        return group.name

    async def _send_batch(self, operation: Operation) -> Operation:
        assert operation.value is not None
        parts = operation.value["txn"]
        batch = [BatchedMessage(b"%d" % part["message"], {}) for part in parts]
        sent = await self._queues.send_batch(TOPIC, _number(operation), batch)
        placed = [{**part, "offset": sent.queue_offset + place} for place, part in enumerate(parts)]
        return operation._replace(type="ok", value={**operation.value, "txn": placed}, node=node_of(sent.broker))

    async def _poll(self, operation: Operation) -> Operation:
        number = _number(operation)
        position, resumed = self._positions.get(number), None
        if position is None:
            resumed = position = await self._queues.query_offset(self._group, TOPIC, number) or 0
        elif position != self._committed.get(number):
            await self._commit(number, position)
        pulled = await self._pull(number, position)
        position = pulled.messages[-1][0] + 1 if pulled.messages else max(position, pulled.next_offset)
        self._positions[number] = position
        value = polled(position, pulled.messages) | {"group": self._group, "resumed": resumed}
        return operation._replace(type="ok", value=value, node=node_of(pulled.broker))

    async def _pull(self, number: int, position: int) -> PullResult:
        """From whom the client is sent to, or from any replica of the group that has this place."""
        if self._host.random.random() >= SLAVE_READ_SHARE:
            return await self._queues.consume(TOPIC, number, position, BATCH, self._group)
        name = (await self._queues.queue(TOPIC, number)).at(position).broker_name
        replica = self._host.random.choice(self._brokers(name).brokers)
        try:
            return await self._pull_from(replica, number, position, self._group)
        except ClientError:
            self._queues.forget(TOPIC)
            raise

    async def _pull_from(self, broker: str, number: int, position: int, group: str, most: int = BATCH) -> PullResult:
        return await self._messages.pull(TOPIC, number, position, most, group, f"{broker}:{BROKER_PORT}")

    async def _commit(self, number: int, position: int) -> None:
        """What earlier polls have returned: nobody may ever see what this one will.

        A commit that fails means redelivery, which is legal.
        """
        try:
            await self._queues.update_offset(self._group, TOPIC, number, position)
        except ClientError:
            return
        self._committed[number] = position

    async def _move(self, operation: Operation) -> Operation:
        """To any group that does not lead the queue."""
        number = _number(operation)
        leader = (await self._queues.queue(TOPIC, number)).leader
        others = [group.name for group in broker_groups(self._settings) if group.name != leader]
        try:
            moved = await self._topics.move(
                await self._queues.masters(TOPIC), TOPIC, number, self._host.random.choice(others)
            )
        except CannotMove as error:
            raise OperationError(PRECONDITION_FAILED, str(error)) from error
        finally:
            self._queues.forget(TOPIC)
        assert operation.value is not None
        value = {**operation.value, "offset": moved.last.logic_offset}
        return operation._replace(type="ok", value=value)

    # final reads

    async def _final_poll(self, operation: Operation) -> Operation:
        """The next messages in the segments of this replica's group; the others have those of other groups."""
        assert operation.value is not None and operation.node is not None
        number, position = _number(operation), operation.value["offset"]
        queue = await self._queues.queue(TOPIC, number)
        group = group_of(self._settings, operation.node)
        messages: tuple[tuple[int, bytes], ...] = ()
        while not messages:
            begin = _next_own(queue, position, group.name)
            if begin is None:
                break
            pulled = await self._pull_from(operation.node, number, begin, "final")
            messages = pulled.messages
            reached = max(begin, pulled.next_offset, pulled.min_offset)
            if reached == position:
                break
            position = messages[-1][0] + 1 if messages else reached
        return operation._replace(type="ok", value=polled(position, messages))

    async def _caught_up(self, operation: Operation) -> Operation:
        """Ok only if the position is the end of the group's segments at its master and at this replica alike.

        A slave that a human has to bring together with its master is read to its own end.
        """
        assert operation.value is not None and operation.node is not None
        number, position = _number(operation), operation.value["offset"]
        self._queues.forget(TOPIC)
        queue = await self._queues.queue(TOPIC, number)
        name = group_of(self._settings, operation.node).name
        if _next_own(queue, position, name) is None:
            return operation._replace(type="ok")
        master = await self._messages.pull(TOPIC, number, position, 1, "final", broker_name=name)
        replica = await self._pull_from(operation.node, number, position, "final", 1)
        if self._settings.has_slaves and not replica.messages and replica.max_offset == position:
            address = f"{operation.node}:{BROKER_PORT}"
            if is_parted(await replication_status(self._messages, address)):
                return operation._replace(type="ok")
        if master.messages or replica.messages or master.max_offset != position or replica.max_offset != position:
            raise OperationError(
                PRECONDITION_FAILED,
                f"read to {position}, the master ends at {master.max_offset}, {operation.node} at {replica.max_offset}",
            )
        return operation._replace(type="ok")

    async def _segments(self, operation: Operation) -> Operation:
        assert operation.value is not None
        self._queues.forget(TOPIC)
        queue = await self._queues.queue(TOPIC, _number(operation))
        if queue.is_pending:
            raise OperationError(PRECONDITION_FAILED, "it is being moved")
        segments = [{"offset": segment.logic_offset, "message": _end(segment)} for segment in queue.segments]
        return operation._replace(type="ok", value={**operation.value, "messages": segments})

    def _brokers(self, name: str) -> BrokerGroup:
        return next(group for group in broker_groups(self._settings) if group.name == name)


def _number(operation: Operation) -> int:
    """By the operation's key, `topic/number`."""
    assert operation.key is not None
    return int(operation.key.rpartition("/")[2])


def _end(segment: Segment) -> int:
    return segment.logic(segment.end_offset) if segment.is_frozen else -1


def _next_own(queue: LogicQueue, position: int, name: str) -> int | None:
    """From where on this group has something at or behind the position; None where nothing of it is left."""
    segment = queue.at(position)
    if segment.broker_name == name:
        return position
    later = (own.logic_offset for own in queue.of(name) if own.logic_offset > position)
    return next(later, None)
