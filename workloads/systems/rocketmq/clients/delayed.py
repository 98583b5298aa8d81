"""Delayed messages: by a level where RocketMQ has one of that delay, else by its timers; received as from a queue.

Only a timer whose time the client says can be taken back: the request has to name its slot."""

from __future__ import annotations

from typing import Any

from harness.operation import Operation
from workloads.systems.rocketmq.clients.connect import carry_out
from workloads.systems.rocketmq.clients.queue import QueueClient
from workloads.systems.rocketmq.settings import RocketmqSettings, node_of

BATCH = 1024
"""A look takes all messages that there are: when one came out is known only once a client looks."""
LEVELS_MS = {1_000: 1, 5_000: 2, 10_000: 3}
"""Delay -> level, of those that are usual with RocketMQ."""


class DelayedClient:
    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._clock = host.clock
        self._queue = QueueClient(host, settings, workload="delayed", batch=BATCH)
        self._requests = {
            "enqueue": self._enqueue,
            "take-back": self._take_back,
            "dequeue": self._queue.dequeue,
            "drain": self._queue.drain,
        }

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        await self._queue.close()

    async def invoke(self, operation: Operation) -> Operation:
        return await carry_out(self._requests, operation)

    async def _enqueue(self, operation: Operation) -> Operation:
        assert operation.value is not None
        body = b"%d" % operation.value["value"]
        value, delay_ms = operation.value["value"], operation.value["delay_ms"]
        due_ms = -(-self._clock.wall_ns() // 1_000_000) + delay_ms if _is_dated(delay_ms) else None
        sent = await self._sent(operation, body, _properties(value, delay_ms, due_ms))
        return sent._replace(value={**operation.value, "due_ms": due_ms})

    async def _take_back(self, operation: Operation) -> Operation:
        """By a message in the slot of the one that is not wanted any more."""
        assert operation.value is not None
        value, due_ms = operation.value["value"], operation.value["due_ms"]
        properties = f"TIMER_DEL_UNIQKEY\x01{_unique_key(value)}\x02TIMER_DELIVER_MS\x01{due_ms}\x02"
        return await self._sent(operation, b"", properties)

    async def _sent(self, operation: Operation, body: bytes, properties: str) -> Operation:
        group, queue = self._queue.queues.of(operation)
        sent = await self._queue.messages.send(
            self._queue.topic, queue, body, properties=properties, broker_name=group.name
        )
        return operation._replace(type="ok", node=node_of(sent.broker))


def _is_dated(delay_ms: int) -> bool:
    """Whether the client says when it is due."""
    return delay_ms % 2 == 1


def _unique_key(value: int) -> str:
    return f"delayed-{value}"


def _properties(value: int, delay_ms: int, due_ms: int | None) -> str:
    if delay_ms in LEVELS_MS:
        return f"DELAY\x01{LEVELS_MS[delay_ms]}\x02"
    if due_ms is not None:
        return f"UNIQ_KEY\x01{_unique_key(value)}\x02TIMER_DELIVER_MS\x01{due_ms}\x02"
    return f"TIMER_DELAY_MS\x01{delay_ms}\x02"
