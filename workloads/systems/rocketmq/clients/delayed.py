"""Delayed messages: by a level where RocketMQ has one of that delay, else by its timers; received as from a queue."""

from __future__ import annotations

from typing import Any

from harness.operation import Operation
from workloads.systems.rocketmq.clients.connect import carry_out
from workloads.systems.rocketmq.clients.queue import QueueClient
from workloads.systems.rocketmq.settings import RocketmqSettings, node_of

BATCH = 1024
"""When a message came out is known only once somebody looks: whoever does takes all there is."""
LEVELS_MS = {1_000: 1, 5_000: 2, 10_000: 3}
"""Delay -> level, of those that are usual with RocketMQ."""


class DelayedClient:
    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._clock = host.clock
        self._queue = QueueClient(host, settings, workload="delayed", batch=BATCH)
        self._requests = {
            "enqueue": self._enqueue,
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
        properties = self._properties(operation.value["delay_ms"])
        group, queue = self._queue.queues.of(operation)
        sent = await self._queue.messages.send(
            self._queue.topic, queue, body, properties=properties, broker_name=group.name
        )
        return operation._replace(type="ok", node=node_of(sent.broker))

    def _properties(self, delay_ms: int) -> str:
        if delay_ms in LEVELS_MS:
            return f"DELAY\x01{LEVELS_MS[delay_ms]}\x02"
        if delay_ms % 2:
            return f"TIMER_DELIVER_MS\x01{-(-self._clock.wall_ns() // 1_000_000) + delay_ms}\x02"
        return f"TIMER_DELAY_MS\x01{delay_ms}\x02"
