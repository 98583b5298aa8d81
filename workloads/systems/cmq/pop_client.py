"""The workload `pop`: a pop pulls some messages of one queue after the other, and who was given one acknowledges it.

Nodes count no deliveries, know no message that came too often, and change nobody's invisible time. An acknowledgement
is good also when it comes late.
"""

from __future__ import annotations

import asyncio
from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.cmq import wire
from system_under_test.cmq.wire import Pulled
from workloads.systems.cmq.access import GroupsClient
from workloads.systems.cmq.errors import MESSAGES_LEFT
from workloads.systems.cmq.queue_client import (
    WAIT_MS,
    WAIT_SHARE,
    acknowledged,
    home_of,
    pulled,
    queue_of,
)
from workloads.systems.cmq.settings import CmqSettings

POPPED = 4
"""A pop takes so many messages at most."""


class PopClient:
    """`Client` of one process."""

    def __init__(self, host: Any, settings: CmqSettings, process: int) -> None:
        self._host = host
        self._patience_s = settings.patience_s
        self._access = GroupsClient(host, settings.names, settings.groups, home_of(settings, process))
        self._queues = settings.queue_names("pop")
        self._turn = process
        self._held: dict[int, tuple[str, int]] = {}
        """Message -> its queue, and its number there."""

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._access.close()

    async def invoke(self, operation: Operation) -> Operation:
        actions = {
            "send": self._send,
            "pop": self._pop,
            "ack": self._ack,
            "drain": self._drain,
            "dead-letters": self._dead_letters,
        }
        return await actions[operation.f](operation)

    async def _send(self, operation: Operation) -> Operation:
        queue = queue_of(operation, "pop")
        command = wire.produce(queue, [b"%d" % _message_of(operation)])
        node, _ = await self._access.ask(queue, command, wire.decode_produced, self._patience_s)
        return operation._replace(type="ok", node=node)

    async def _pop(self, operation: Operation) -> Operation:
        self._turn += 1
        queue = self._queues[self._turn % len(self._queues)]
        wait_ms = WAIT_MS if self._host.random.random() < WAIT_SHARE else 0
        node, found = await pulled(self._access, queue, most=POPPED, wait_ms=wait_ms, patience_s=self._patience_s)
        return self._given_out(operation, {queue: found}, node)

    async def _drain(self, operation: Operation) -> Operation:
        """Raises OperationError where nothing comes, and something is there."""
        pulls = (pulled(self._access, queue, most=POPPED) for queue in self._queues)
        answers = await asyncio.gather(*pulls, return_exceptions=True)
        found: dict[str, Pulled] = {}
        for queue, answer in zip(self._queues, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            _, found[queue] = answer
        left = sum(one.left for one in found.values())
        if left and not any(one.messages for one in found.values()):
            raise OperationError(MESSAGES_LEFT, f"{left} are there")
        return self._given_out(operation, found, None)

    def _given_out(self, operation: Operation, found: dict[str, Pulled], node: str | None) -> Operation:
        deliveries = []
        for queue, one in found.items():
            for number, body in one.messages:
                self._held[int(body)] = queue, number
                deliveries.append({"message": int(body), "times": None})
        return operation._replace(type="ok", value={**(operation.value or {}), "deliveries": deliveries}, node=node)

    async def _ack(self, operation: Operation) -> Operation:
        held = self._held.get(_message_of(operation))
        if held is None:
            raise OperationError(PRECONDITION_FAILED, "this process was not given the message")
        queue, number = held
        node, _ = await acknowledged(self._access, queue, [number], self._patience_s)
        return operation._replace(type="ok", node=node)

    async def _dead_letters(self, operation: Operation) -> Operation:
        """There are none."""
        return operation._replace(type="ok", value={**(operation.value or {}), "deliveries": []})


def _message_of(operation: Operation) -> int:
    assert operation.value is not None
    return int(operation.value["message"])
