"""Pops what brokers tell a member to pop, and hands it to the listener.

A task for each queue pops, `consume_tasks` others consume. What was consumed is acknowledged; what failed is made
visible again a little later. Of what cannot be said to the broker, or is not, for the member is gone, the message comes
again when its invisible time is over; one whose time is over before the listener gets it is left to that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.consumer.config import ConsumerConfig, Listener, Outcome
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage
from system_under_test.rocketmq.client.consumer.requests import ConsumerRequests
from system_under_test.rocketmq.client.pop_client import PoppedMessage
from system_under_test.rocketmq.consumer_protocol import MessageQueue
from system_under_test.rocketmq.pop_protocol import MAX_POPPED
from system_under_test.runtime.host import Host

_Batch = tuple[int, tuple[PoppedMessage, ...]]
"""(when it was asked for, what came)"""


class Popping:
    def __init__(self, host: Host, config: ConsumerConfig, requests: ConsumerRequests, listener: Listener) -> None:
        self._host = host
        self._config = config
        self._pops = requests.pops(config.group)
        self._requests = requests
        self._listener = listener
        self._batches: asyncio.Queue[_Batch] = asyncio.Queue()
        self._waiting = 0
        """Messages that no listener has been given yet."""
        self._tasks: dict[MessageQueue, asyncio.Task[None]] = {}
        self._consuming: list[asyncio.Task[None]] = []
        self._is_ending = False
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def assign(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Pop these of the topic from now on, and no others."""
        for queue in [queue for queue in self._tasks if queue.topic == topic and queue not in queues]:
            self._tasks.pop(queue).cancel()
        for queue in queues:
            if queue not in self._tasks:
                self._tasks[queue] = self._host.spawn(self._pop(queue), f"pops of {queue}")
        if self._tasks and not self._consuming:
            self._consuming = [
                self._host.spawn(self._consume_all(), "consumption of what is popped")
                for _ in range(self._config.consume_tasks)
            ]

    async def finish(self) -> None:
        """Give nothing new to the listener; return when it is done with what it has."""
        self._is_ending = True
        for task in self._tasks.values():
            task.cancel()
        await self._idle.wait()

    def close(self) -> None:
        for task in (*self._tasks.values(), *self._consuming):
            task.cancel()

    async def _pop(self, queue: MessageQueue) -> None:
        clock, config = self._host.clock, self._config
        while True:
            if self._waiting >= config.limits.messages:
                await clock.sleep(config.flow_control_s)
                continue
            asked_ns = clock.monotonic_ns()
            try:
                popped = await self._pops.pop(
                    queue.topic,
                    round(config.pop_invisible_s * 1000),
                    max_count=min(config.pull_batch, MAX_POPPED),
                    queue_id=queue.queue_id,
                    poll_ms=round(config.suspend_pull_s * 1000),
                    expression=config.subscriptions[queue.topic],
                    broker_name=queue.broker_name,
                )
            except ClientError:
                self._requests.forget_route(queue.topic)
                await clock.sleep(config.pull_retry_s)
                continue
            self._waiting += len(popped.messages)
            for first in range(0, len(popped.messages), config.consume_batch):
                self._batches.put_nowait((asked_ns, popped.messages[first : first + config.consume_batch]))

    async def _consume_all(self) -> None:
        while True:
            asked_ns, messages = await self._batches.get()
            self._waiting -= len(messages)
            lives_ns = int(self._config.pop_invisible_s * 1e9)
            if self._is_ending or self._host.clock.monotonic_ns() - asked_ns >= lives_ns:
                continue
            self._busy += 1
            self._idle.clear()
            try:
                await self._consume(messages)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

    async def _consume(self, messages: tuple[PoppedMessage, ...]) -> None:
        outcome = await self._listener(
            tuple(ConsumerMessage.of_popped(message, self._config.group) for message in messages)
        )
        for message in messages:
            with suppress(ClientError):
                if outcome is Outcome.SUCCESS:
                    await self._pops.ack(message)
                else:
                    await self._pops.change_invisible_time(message, round(self._config.pop_again_s * 1000))
