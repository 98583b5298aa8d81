"""A consumer that pops, and a producer: one request an invocation, but for the dead letters, which are only read.

A process is a consumer of its own: it acknowledges, or changes the invisible time of, the last delivery of a message
that it was given itself.
"""

from __future__ import annotations

from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.pop_client import PopClient, PoppedMessage
from system_under_test.rocketmq.pop_protocol import dead_letter_topic
from workloads.systems.rocketmq.clients.connect import carry_out, message_client
from workloads.systems.rocketmq.clients.holds import Holds
from workloads.systems.rocketmq.clients.queues import Queues
from workloads.systems.rocketmq.settings import TOPIC, RocketmqSettings, broker_groups, node_of, topic_of

GROUP = "poppers"
BATCH = 8
POLL_MS = 200
POLL_SHARE = 0.2
"""Share of the pops that wait until something comes."""
DEAD_LETTERS = 1024


class PopWorkloadClient:
    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._client = message_client(host, settings)
        self._topic = topic_of(settings, "pop")
        self._queues = Queues(settings)
        self._groups = [group.name for group in broker_groups(settings)]
        self._pops = PopClient(host, self._client, GROUP)
        self._held: dict[int, PoppedMessage] = {}
        self._holds = Holds(host, settings)
        self._requests = {
            "send": self._send,
            "pop": self._pop,
            "drain": self._pop,
            "ack": self._ack,
            "change": self._change,
            "dead-letters": self._dead_letters,
        }

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        return await carry_out(self._requests, operation)

    async def _send(self, operation: Operation) -> Operation:
        group, queue = self._queues.of(operation)
        sent = await self._client.send(self._topic, queue, b"%d" % message_of(operation), broker_name=group.name)
        return operation._replace(type="ok", node=node_of(sent.broker))

    async def _pop(self, operation: Operation) -> Operation:
        assert operation.value is not None
        asked_ns = self._holds.now_ns()
        waits = operation.f == "pop" and self._host.random.random() < POLL_SHARE
        invisible_ms, is_ordered = operation.value["invisible_ms"], operation.value["in_order"] is True
        popped = await self._pops.pop(
            self._topic, invisible_ms, max_count=BATCH, poll_ms=POLL_MS if waits else 0, is_ordered=is_ordered
        )
        for _ in self._groups[1:] if operation.f == "drain" else ():
            # Each group of brokers in its turn: nothing is left once all of them have nothing.
            if popped.messages:
                break
            asked_ns = self._holds.now_ns()
            popped = await self._pops.pop(self._topic, invisible_ms, max_count=BATCH, is_ordered=is_ordered)
        deliveries = []
        for message in popped.messages:
            number = int(message.body)
            self._held[number] = message
            self._holds.hold(number, asked_ns, invisible_ms)
            place = self._place(message) if is_ordered else {}
            deliveries.append({"message": number, "times": message.reconsume_times, **place})
        return operation._replace(
            type="ok", value={**operation.value, "deliveries": deliveries}, node=node_of(popped.broker)
        )

    def _place(self, message: PoppedMessage) -> dict[str, Any]:
        handle = message.handle
        topic = f"retry/{TOPIC}" if handle.is_retried else TOPIC
        return {"queue": self._queues.name(topic, handle.broker_name, handle.queue_id), "offset": handle.offset}

    async def _ack(self, operation: Operation) -> Operation:
        broker = await self._pops.ack(self._held_by(operation))
        self._holds.acknowledged(message_of(operation), node_of(broker))
        return operation._replace(type="ok", node=node_of(broker))

    async def _change(self, operation: Operation) -> Operation:
        assert operation.value is not None
        message, invisible_ms = self._held_by(operation), operation.value["invisible_ms"]
        self._holds.require_unacknowledged(message_of(operation))
        asked_ns = self._holds.now_ns()
        self._held[message_of(operation)] = await self._pops.change_invisible_time(message, invisible_ms)
        self._holds.changed(message_of(operation), asked_ns, invisible_ms)
        return operation._replace(type="ok")

    def _held_by(self, operation: Operation) -> PoppedMessage:
        held = self._held.get(message_of(operation))
        if held is None:
            raise not_held()
        return held

    async def _dead_letters(self, operation: Operation) -> Operation:
        """All of them, from each master of the topic that they were sent to."""
        masters = {group.broker_name: group.master for group in (await self._client.route(self._topic)).groups}
        deliveries: list[dict[str, Any]] = []
        node = None
        for name in self._groups:
            master = masters.get(name)
            if master is None:
                raise ClientError("no-route", True, f"{name} has no master")
            try:
                await self._read_dead_letters(master, deliveries)
            except ClientError as error:
                if error.code != "no-route" or error.node is None:
                    raise
                # The broker has no topic for them: there are none.
            node = node_of(master)
        assert operation.value is not None
        return operation._replace(type="ok", value={**operation.value, "deliveries": deliveries}, node=node)

    async def _read_dead_letters(self, master: str, deliveries: list[dict[str, Any]]) -> None:
        position = 0
        while True:
            pulled = await self._client.pull(dead_letter_topic(GROUP), 0, position, DEAD_LETTERS, GROUP, master)
            if not pulled.messages and pulled.min_offset <= position:
                return
            deliveries += [{"message": int(body), "times": 0} for _, body in pulled.messages]
            # What lies before the queue's beginning has expired.
            position = pulled.messages[-1][0] + 1 if pulled.messages else pulled.min_offset


def message_of(operation: Operation) -> int:
    assert operation.value is not None
    return int(operation.value["message"])


def not_held() -> OperationError:
    return OperationError(PRECONDITION_FAILED, "this process was not given the message")
