"""A consumer that pops, and a producer: one request an invocation, but for the dead letters, which are only read.

A process is a consumer of its own: it acknowledges, or changes the invisible time of, the last delivery of a message
that it was given itself.
"""

from __future__ import annotations

from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.client.pop_client import PopClient, PoppedMessage
from system_under_test.rocketmq.pop_protocol import dead_letter_topic
from workloads.systems.rocketmq.clients.connect import carry_out, message_client
from workloads.systems.rocketmq.clients.log import queue_of
from workloads.systems.rocketmq.settings import TOPIC, RocketmqSettings, node_of

GROUP = "poppers"
BATCH = 8
POLL_MS = 200
POLL_SHARE = 0.2
"""Of the pops so many wait until something comes."""
DEAD_LETTERS = 1024


class PopWorkloadClient:
    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._client = message_client(host, settings)
        self._pops = PopClient(host, self._client, GROUP)
        self._held: dict[int, PoppedMessage] = {}
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
        sent = await self._client.send(TOPIC, queue_of(operation), b"%d" % _message(operation))
        return operation._replace(type="ok", node=node_of(sent.broker))

    async def _pop(self, operation: Operation) -> Operation:
        assert operation.value is not None
        waits = operation.f == "pop" and self._host.random.random() < POLL_SHARE
        popped = await self._pops.pop(
            TOPIC, operation.value["invisible_ms"], max_count=BATCH, poll_ms=POLL_MS if waits else 0
        )
        deliveries = []
        for message in popped.messages:
            number = int(message.body)
            self._held[number] = message
            deliveries.append({"message": number, "times": message.reconsume_times})
        return operation._replace(
            type="ok", value={**operation.value, "deliveries": deliveries}, node=node_of(popped.broker)
        )

    async def _ack(self, operation: Operation) -> Operation:
        broker = await self._pops.ack(self._held_by(operation))
        return operation._replace(type="ok", node=node_of(broker))

    async def _change(self, operation: Operation) -> Operation:
        assert operation.value is not None
        changed = await self._pops.change_invisible_time(self._held_by(operation), operation.value["invisible_ms"])
        self._held[_message(operation)] = changed
        return operation._replace(type="ok")

    def _held_by(self, operation: Operation) -> PoppedMessage:
        held = self._held.get(_message(operation))
        if held is None:
            raise OperationError(PRECONDITION_FAILED, "this process was not given the message")
        return held

    async def _dead_letters(self, operation: Operation) -> Operation:
        """All of them, from the master of the topic that they were sent to."""
        masters = [group.master for group in (await self._client.route(TOPIC)).groups]
        if len(masters) != 1 or masters[0] is None:
            raise ClientError("no-route", True, f"{TOPIC} has no master, or several")
        deliveries: list[dict[str, int]] = []
        try:
            await self._read_dead_letters(masters[0], deliveries)
        except ClientError as error:
            if error.code != "no-route" or error.node is None:
                raise
            # The broker has no topic for them: there are none.
        assert operation.value is not None
        value = {**operation.value, "deliveries": deliveries}
        return operation._replace(type="ok", value=value, node=node_of(masters[0]))

    async def _read_dead_letters(self, master: str, deliveries: list[dict[str, int]]) -> None:
        position = 0
        while True:
            pulled = await self._client.pull(dead_letter_topic(GROUP), 0, position, DEAD_LETTERS, GROUP, master)
            if not pulled.messages:
                return
            deliveries += [{"message": int(body), "times": 0} for _, body in pulled.messages]
            position = pulled.messages[-1][0] + 1


def _message(operation: Operation) -> int:
    assert operation.value is not None
    return int(operation.value["message"])
