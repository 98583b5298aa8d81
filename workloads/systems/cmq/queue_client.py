"""The workload `queue`: an element is a message; a dequeue pulls one and acknowledges it.

It is ok only if this very request acknowledged the message, so that each comes out once. Where another consumer did,
for it had come again meanwhile, nothing was taken here. Of an acknowledgement without an answer it is not known: what
it was for is shown, so that it is not missed.

A drain does so with all messages. It is ok once it was given as many as the queue says that are not acknowledged, those
that consumers hold among them, and each of these acknowledgements was answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.errors import OperationError
from harness.operation import Operation
from system_under_test.cmq import wire
from system_under_test.cmq.wire import MOST_MESSAGES, Pulled
from workloads.systems.cmq.access import GroupsClient
from workloads.systems.cmq.errors import ACKNOWLEDGED_BY_ANOTHER, CUT_SHORT, MESSAGES_LEFT, PULL_UNANSWERED
from workloads.systems.cmq.settings import PATIENCE_S, CmqSettings, queue_name

PULL_PATIENCE_S = PATIENCE_S / 2
"""A drain's, for one pull."""
WAIT_MS, WAIT_SHARE = 200, 0.2
"""So long some of the pulls wait until a message comes."""
DRAINS_WITHIN_S = 2.5
"""A drain that lacks messages after so long begins no pull any more, and fails."""
PULLS_AT_ONCE = 8
"""So many a drain makes, so that hundreds of messages come in time where links are long."""
AGAIN_S = 0.1


def home_of(settings: CmqSettings, process: int) -> str | None:
    """Every second client has one."""
    return settings.names[process // 2 % settings.nodes] if process % 2 else None


def queue_of(operation: Operation, workload: str) -> str:
    return queue_name(int((operation.key or "").rpartition("/")[2]), workload)


async def pulled(
    access: GroupsClient, queue: str, *, most: int, wait_ms: int = 0, patience_s: float = PULL_PATIENCE_S
) -> tuple[str, Pulled]:
    """Who answered, and what came. Raises OperationError, which is definite, for nothing was taken."""
    try:
        pull = wire.pull(queue, most, wait_ms)
        return await access.ask(queue, pull, wire.decode_pulled, patience_s)
    except OperationError as error:
        if error.error.definite:
            raise
        raise OperationError(PULL_UNANSWERED, str(error), node=error.node) from error


async def acknowledged(
    access: GroupsClient, queue: str, numbers: Sequence[int], patience_s: float
) -> tuple[str, tuple[bool, ...]]:
    """Who answered, and of each message whether this request acknowledged it. Raises OperationError."""
    decode = partial(wire.decode_acknowledged, count=len(numbers))
    return await access.ask(queue, wire.ack(queue, numbers), decode, patience_s)


class QueueClient:
    """`Client` of one process."""

    def __init__(self, host: Any, settings: CmqSettings, process: int) -> None:
        self._host = host
        self._patience_s = settings.patience_s
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
        node, _ = await self._access.ask(queue, command, wire.decode_produced, self._patience_s)
        return operation._replace(type="ok", node=node)

    async def _dequeue(self, operation: Operation, queue: str) -> Operation:
        wait_ms = WAIT_MS if self._host.random.random() < WAIT_SHARE else 0
        node, found = await pulled(self._access, queue, most=1, wait_ms=wait_ms, patience_s=self._patience_s)
        if not found.messages:
            return operation._replace(type="ok", node=node)
        ((number, body),) = found.messages
        completion = operation._replace(value=_came(operation, value=int(body)))
        try:
            node, (newly,) = await acknowledged(self._access, queue, [number], self._patience_s)
        except OperationError as error:
            if error.error.definite:
                raise
            return completion._replace(type="info", error=error.error.code, node=error.node)
        if not newly:
            raise OperationError(ACKNOWLEDGED_BY_ANOTHER, f"message {number} of {queue}", node=node)
        return completion._replace(type="ok", node=node)

    async def _drain(self, operation: Operation, queue: str) -> Operation:
        clock = self._host.clock
        began_ns = clock.monotonic_ns()
        taken: list[int] = []
        failure = OperationError(MESSAGES_LEFT, f"consumers hold some of {queue}")
        while (lasts_s := (clock.monotonic_ns() - began_ns) / 1e9) < DRAINS_WITHIN_S:
            try:
                node, messages, is_all = await self._all_pulled(queue)
            except OperationError as error:
                failure = error
                break
            lasts_s = (clock.monotonic_ns() - began_ns) / 1e9
            acks = await self._all_acknowledged(queue, messages, PATIENCE_S - lasts_s)
            taken += acks.taken
            if acks.is_in_doubt:
                failure = OperationError(CUT_SHORT, f"acknowledgements for {queue} were not answered", node=node)
                break
            if is_all and acks.are_answered:
                return operation._replace(type="ok", value=_came(operation, values=sorted(taken)), node=node)
            if not messages:
                await clock.sleep(AGAIN_S)
        if not taken:
            raise failure
        value = _came(operation, values=sorted(taken))
        return operation._replace(type="info", value=value, error=CUT_SHORT.code, node=failure.node)

    async def _all_pulled(self, queue: str) -> tuple[str, dict[int, bytes], bool]:
        """Who answered, the messages by their numbers, and whether they are all that are not acknowledged. Raises
        OperationError."""
        node, first = await pulled(self._access, queue, most=MOST_MESSAGES)
        messages, is_all = dict(first.messages), True
        more = min(PULLS_AT_ONCE, -(-(first.left - len(messages)) // MOST_MESSAGES)) if messages else 0
        pulls = (pulled(self._access, queue, most=MOST_MESSAGES) for _ in range(more))
        for answer in await asyncio.gather(*pulls, return_exceptions=True):
            if isinstance(answer, OperationError):
                is_all = False
                continue
            if isinstance(answer, BaseException):
                raise answer
            _, found = answer
            messages.update(found.messages)
            is_all &= found.left == first.left
        return node, messages, is_all and len(messages) == first.left

    async def _all_acknowledged(self, queue: str, messages: Mapping[int, bytes], patience_s: float) -> _Acks:
        numbers = sorted(messages)
        parts = [numbers[at : at + MOST_MESSAGES] for at in range(0, len(numbers), MOST_MESSAGES)]
        answers = await asyncio.gather(
            *(acknowledged(self._access, queue, part, patience_s) for part in parts), return_exceptions=True
        )
        acks = _Acks()
        for part, answer in zip(parts, answers, strict=True):
            if isinstance(answer, OperationError):
                acks.are_answered = False
                if not answer.error.definite:
                    acks.is_in_doubt = True
                    acks.taken += [int(messages[number]) for number in part]
            elif isinstance(answer, BaseException):
                raise answer
            else:
                _, newly = answer
                acks.taken += [int(messages[number]) for number, is_new in zip(part, newly, strict=True) if is_new]
        return acks


@dataclass(slots=True)
class _Acks:
    """What came of acknowledgements."""

    taken: list[int] = field(default_factory=list)
    """Values of messages that were acknowledged by these and no other requests, and those of which that is not
    known."""
    are_answered: bool = True
    is_in_doubt: bool = False


def _came(operation: Operation, *, value: int | None = None, values: list[int] | None = None) -> Mapping[str, Any]:
    return {**(operation.value or {}), "value": value, "values": values}
