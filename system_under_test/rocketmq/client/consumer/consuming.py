"""Hands messages to the listener, in one of two ways, and sees to it that none counts as consumed before it is.

Concurrently: `consume_tasks` tasks take messages from all queues, in any order. What fails is sent back to the broker,
which gives it to the group again later; what cannot be sent back stays and is tried again here.

In order: a task for each queue gives its messages one after the other, only while the queue's lock is fresh. What fails
is tried again, and keeps those behind it waiting, until it has been tried often enough and is a dead letter.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.consumer.config import ConsumerConfig, Listener, Outcome
from system_under_test.rocketmq.client.consumer.offset_store import OffsetStore
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage, ProcessQueue
from system_under_test.rocketmq.client.consumer.requests import ConsumerRequests
from system_under_test.rocketmq.consumer_protocol import ORIGIN_MESSAGE_ID, MessageQueue, SendBackRequest
from system_under_test.runtime.host import Host

Messages = tuple[ConsumerMessage, ...]
DEAD = -1
"""Stands in place of a level of delay: the message is a dead letter. (What was tried in order has no count of that at
the broker.)"""


class Consuming(Protocol):
    def start(self) -> None: ...

    def take_over(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """The queue is this member's from now on."""

    def pulled(self, queue: MessageQueue, process_queue: ProcessQueue, messages: Messages) -> None:
        """New messages, which the process queue holds already."""

    def give_up(self, queue: MessageQueue) -> None:
        """It is this member's no more, and the listener has nothing of it that counts."""

    def is_busy(self, queue: MessageQueue) -> bool:
        """Whether the listener has messages of it at this moment."""

    async def finish(self) -> None:
        """Give nothing new to the listener; return when it is done with what it has."""

    def close(self) -> None: ...


def may_begin(config: ConsumerConfig, process_queue: ProcessQueue, now_ns: int) -> bool:
    """Whether the listener may begin with messages of the queue: where it takes a lock, while that is fresh."""
    return not config.needs_locks or process_queue.is_locked(now_ns, int(config.lock_lives_s * 1e9))


class _Failed:
    """Messages that the listener failed to consume, of a group that divides its queues."""

    def __init__(self, config: ConsumerConfig, requests: ConsumerRequests) -> None:
        self._config = config
        self._requests = requests

    async def send_back(self, message: ConsumerMessage, *, is_dead: bool = False) -> bool:
        """Whether the broker has it again, as a dead letter if it is one."""
        config = self._config
        request = SendBackRequest(
            offset=message.physical_offset,
            group=config.group,
            delay_level=DEAD if is_dead else config.retry_delay_level,
            origin_message_id=message.properties.get(ORIGIN_MESSAGE_ID) or f"{message.physical_offset:032X}",
            origin_topic=message.topic,
            max_reconsume_times=config.max_reconsume_times,
        )
        try:
            await self._requests.send_back(message.queue, request)
        except ClientError:
            self._requests.forget_route(message.queue.topic)
            return False
        return True


class _Batch(NamedTuple):
    queue: MessageQueue
    process_queue: ProcessQueue
    messages: Messages


class Concurrently:
    def __init__(
        self, host: Host, config: ConsumerConfig, requests: ConsumerRequests, offsets: OffsetStore, listener: Listener
    ) -> None:
        self._host = host
        self._config = config
        self._failed = _Failed(config, requests)
        self._offsets = offsets
        self._listener = listener
        self._batches: asyncio.Queue[_Batch] = asyncio.Queue()
        self._is_ending = False
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: dict[int, asyncio.Task[None]] = {}
        self._serial = 0

    def start(self) -> None:
        self._tasks = [self._host.spawn(self._work(), "consumption") for _ in range(self._config.consume_tasks)]

    def take_over(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        return

    def pulled(self, queue: MessageQueue, process_queue: ProcessQueue, messages: Messages) -> None:
        size = self._config.consume_batch
        for first in range(0, len(messages), size):
            self._batches.put_nowait(_Batch(queue, process_queue, messages[first : first + size]))

    def give_up(self, queue: MessageQueue) -> None:
        return

    def is_busy(self, queue: MessageQueue) -> bool:
        return False  # Who takes the queue over gets again what is in hand, and what comes of it here is not committed.

    async def finish(self) -> None:
        self._is_ending = True
        await self._idle.wait()

    def close(self) -> None:
        for task in (*self._tasks, *self._waiting.values()):
            task.cancel()

    async def _work(self) -> None:
        while True:
            batch = await self._batches.get()
            if batch.process_queue.is_dropped or self._is_ending:
                continue
            self._busy += 1
            self._idle.clear()
            try:
                await self._consume(batch)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

    async def _consume(self, batch: _Batch) -> None:
        outcome = await self._listener(batch.messages)
        done = list(batch.messages)
        if outcome is Outcome.LATER and self._config.divides_queues:
            kept = [message for message in batch.messages if not await self._failed.send_back(message)]
            done = [message for message in batch.messages if message not in kept]
            if kept:
                self._again_later(batch, tuple(kept))
        offset = batch.process_queue.consumed(done)
        if not batch.process_queue.is_dropped:
            self._offsets.update(batch.queue, offset)

    def _again_later(self, batch: _Batch, messages: Messages) -> None:
        self._serial += 1
        again = self._wait_and_consume(self._serial, batch._replace(messages=messages))
        self._waiting[self._serial] = self._host.spawn(again, "consumption once more")

    async def _wait_and_consume(self, serial: int, batch: _Batch) -> None:
        await self._host.clock.sleep(self._config.consume_again_s)
        del self._waiting[serial]
        self._batches.put_nowait(batch)


class Orderly:
    def __init__(
        self, host: Host, config: ConsumerConfig, requests: ConsumerRequests, offsets: OffsetStore, listener: Listener
    ) -> None:
        self._host = host
        self._config = config
        self._failed = _Failed(config, requests)
        self._offsets = offsets
        self._listener = listener
        self._is_ending = False
        self._busy: dict[MessageQueue, Messages] = {}
        self._free = asyncio.Event()
        self._free.set()
        self._tasks: dict[MessageQueue, asyncio.Task[None]] = {}
        self._due: dict[MessageQueue, asyncio.Event] = {}

    def start(self) -> None:
        return

    def take_over(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        self._due[queue] = asyncio.Event()
        self._tasks[queue] = self._host.spawn(self._consume(queue, process_queue), f"consumption of {queue}")

    def pulled(self, queue: MessageQueue, process_queue: ProcessQueue, messages: Messages) -> None:
        self._due[queue].set()

    def give_up(self, queue: MessageQueue) -> None:
        self._tasks.pop(queue).cancel()
        del self._due[queue]

    def is_busy(self, queue: MessageQueue) -> bool:
        return queue in self._busy

    async def finish(self) -> None:
        self._is_ending = True
        await self._free.wait()

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _consume(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        clock, due = self._host.clock, self._due[queue]
        while not process_queue.is_dropped and not self._is_ending:
            messages = process_queue.first(self._config.consume_batch)
            if not messages:
                due.clear()
                await due.wait()
            elif not may_begin(self._config, process_queue, clock.monotonic_ns()):
                await clock.sleep(self._config.flow_control_s)
            elif not await self._deliver(queue, process_queue, messages) and not process_queue.is_dropped:
                await clock.sleep(self._config.suspend_queue_s)

    async def _deliver(self, queue: MessageQueue, process_queue: ProcessQueue, messages: Messages) -> bool:
        """Whether these messages are done with."""
        self._busy[queue] = messages
        self._free.clear()
        try:
            outcome = await self._listener(messages)
            if outcome is Outcome.LATER and not await self._are_dead(process_queue, messages):
                return False
            offset = process_queue.consumed(messages)
            # The queue is nobody else's before it is given up, which waits for this.
            if not process_queue.is_void:
                self._offsets.update(queue, offset)
            return True
        finally:
            del self._busy[queue]
            if not self._busy:
                self._free.set()

    async def _are_dead(self, process_queue: ProcessQueue, messages: Messages) -> bool:
        """Whether all of them were tried often enough, and are dead letters now; the others are tried once more."""
        most = self._config.max_reconsume_times
        is_kept = False
        for message in messages:
            if most is None or not self._config.divides_queues or message.reconsume_times < most:
                process_queue.change((message.tried_again(),))
                is_kept = True
            elif not await self._failed.send_back(message, is_dead=True):
                is_kept = True
        return not is_kept
