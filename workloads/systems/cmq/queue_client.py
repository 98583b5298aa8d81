"""The workload `queue`: an element is a message; a dequeue pulls one and acknowledges it.

It is ok only if this very request acknowledged the message, so that each comes out once. Where another consumer did,
for it had come again meanwhile, nothing was taken here. Of an acknowledgement without an answer it is not known: what
it was for is shown, so that it is not missed.

A drain pulls and acknowledges nothing, so that one which fails took nothing: it has all that was left once it was given
as many messages as the queue says that are not acknowledged, those that consumers hold among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.errors import OperationError
from harness.operation import Operation
from system_under_test.cmq import wire
from system_under_test.cmq.wire import MOST_MESSAGES, Pulled
from workloads.systems.cmq.access import GroupsClient
from workloads.systems.cmq.errors import ACKNOWLEDGED_BY_ANOTHER, MESSAGES_LEFT, PULL_UNANSWERED
from workloads.systems.cmq.settings import CmqSettings, queue_name

PATIENCE_S = 4.0
"""How long an operation may take: less than the harness waits for it, which would know less of it."""
PULL_PATIENCE_S = 2.0
"""A dequeue has as much left for the acknowledgement."""
WAIT_MS, WAIT_SHARE = 200, 0.2
"""So long some of the pulls wait until a message comes."""
DRAINS_WITHIN_S = 2.5
"""A drain that lacks messages after so long begins no pull any more, and fails."""
PULLS_AT_ONCE = 8
"""Of a drain: where links are long, hundreds of messages come in time."""
AGAIN_S = 0.1


def home_of(settings: CmqSettings, process: int) -> str | None:
    """Every second client has one."""
    return settings.names[process // 2 % settings.nodes] if process % 2 else None


def queue_of(operation: Operation, workload: str) -> str:
    return queue_name(int((operation.key or "").rpartition("/")[2]), workload)


async def pulled(access: GroupsClient, queue: str, *, most: int, wait_ms: int = 0) -> tuple[str, Pulled]:
    """Who answered, and what came. Raises OperationError, which is definite, for nothing was taken."""
    try:
        return await access.ask(queue, wire.pull(queue, most, wait_ms), wire.decode_pulled, PULL_PATIENCE_S)
    except OperationError as error:
        if error.error.definite:
            raise
        raise OperationError(PULL_UNANSWERED, str(error), node=error.node) from error


class QueueClient:
    """`Client` of one process."""

    def __init__(self, host: Any, settings: CmqSettings, process: int) -> None:
        self._host = host
        self._access = GroupsClient(host, settings.names, settings.groups, home_of(settings, process))

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._access.close()

    async def invoke(self, operation: Operation) -> Operation:
        actions = {"enqueue": self._enqueue, "dequeue": self._dequeue, "drain": self._drain}
        return await actions[operation.f](operation, queue_of(operation, "queue"))

    async def _enqueue(self, operation: Operation, queue: str) -> Operation:
        assert operation.value is not None
        command = wire.produce(queue, [b"%d" % operation.value["value"]])
        node, _ = await self._access.ask(queue, command, wire.decode_produced, PATIENCE_S)
        return operation._replace(type="ok", node=node)

    async def _dequeue(self, operation: Operation, queue: str) -> Operation:
        began_ns = self._host.clock.monotonic_ns()
        wait_ms = WAIT_MS if self._host.random.random() < WAIT_SHARE else 0
        node, found = await pulled(self._access, queue, most=1, wait_ms=wait_ms)
        if not found.messages:
            return operation._replace(type="ok", node=node)
        ((number, body),) = found.messages
        completion = operation._replace(value=_came(operation, value=int(body)))
        left_s = PATIENCE_S - (self._host.clock.monotonic_ns() - began_ns) / 1e9
        decode = partial(wire.decode_acknowledged, count=1)
        try:
            node, (newly,) = await self._access.ask(queue, wire.ack(queue, [number]), decode, left_s)
        except OperationError as error:
            if error.error.definite:
                raise
            return completion._replace(type="info", error=error.error.code, node=error.node)
        if not newly:
            raise OperationError(ACKNOWLEDGED_BY_ANOTHER, f"message {number} of {queue}", node=node)
        return completion._replace(type="ok", node=node)

    async def _drain(self, operation: Operation, queue: str) -> Operation:
        clock = self._host.clock
        until_ns = clock.monotonic_ns() + int(DRAINS_WITHIN_S * 1e9)
        messages: dict[int, bytes] = {}
        total: int | None = None
        pulls = 1
        while True:
            if clock.monotonic_ns() > until_ns:
                raise OperationError(MESSAGES_LEFT, f"{len(messages)} of {total} came of {queue}")
            pull = partial(pulled, self._access, queue, most=MOST_MESSAGES)
            # All have ended when one has failed, and so ends the drain.
            answers = await asyncio.gather(*(pull() for _ in range(pulls)), return_exceptions=True)
            before = len(messages)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
                node, found = answer
                messages.update(found.messages)
                if total is not None and found.left != total:
                    raise OperationError(MESSAGES_LEFT, f"{queue} had {total}, and now {found.left}", node=node)
                total = found.left
            assert total is not None
            if len(messages) == total:
                values = [int(body) for _, body in sorted(messages.items())]
                return operation._replace(type="ok", value=_came(operation, values=values), node=node)
            if len(messages) == before:
                await clock.sleep(AGAIN_S)
            pulls = min(PULLS_AT_ONCE, max(1, -(-(total - len(messages)) // MOST_MESSAGES)))


def _came(operation: Operation, *, value: int | None = None, values: list[int] | None = None) -> Mapping[str, Any]:
    return {**(operation.value or {}), "value": value, "values": values}
