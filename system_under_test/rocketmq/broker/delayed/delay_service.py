"""Delivers messages that are delayed by a level, when their time has come; only the master does.

A message is due when the wall clock shows its store timestamp and the delay of its level, as in RocketMQ: where clocks
differ, it may be early by what they differ. It is never late for the same reason: by the monotonic clock it waits no
longer than its delay from when this master has first seen it, whatever wall clocks do.

Each message is tried until it is written, and counts as delivered once it is confirmed: from then on the progress of
its level may pass it. A master that comes after another begins where that one's progress is known to have been, and
delivers again what came after it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.delayed.delay_levels import DelayDelivery, due
from system_under_test.rocketmq.broker.delayed.delivered_prefix import DeliveredPrefix
from system_under_test.rocketmq.broker.delayed.delivery import Deliveries, read_waiting
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.topic import SCHEDULE_TOPIC
from system_under_test.runtime.host import Host
from system_under_test.storage.message import Message
from system_under_test.storage.message_store import MessageStore

RETRY_S = 0.1
LOOK_S = 1.0
"""A wall clock that jumps is noticed after this time."""
READ_COUNT = 32
MAX_NOTES = 512


class Arrivals:
    """By when messages of a queue had arrived, by the monotonic clock: each at its note's time or before."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._times_ns: list[int] = []

    def note(self, end: int, now_ns: int) -> None:
        """The queue reaches to `end` now."""
        if len(self._ends) >= MAX_NOTES:
            # Every second note goes, the newest stays: the time reported may then be later, never earlier.
            del self._ends[-2::-2], self._times_ns[-2::-2]
        self._ends.append(end)
        self._times_ns.append(now_ns)

    def arrived_ns(self, offset: int) -> int | None:
        """None for one that was never noted."""
        number = bisect_right(self._ends, offset)
        return self._times_ns[number] if number < len(self._ends) else None

    def passed(self, offset: int) -> None:
        """Messages before `offset` are not asked for any more."""
        number = bisect_right(self._ends, offset)
        del self._ends[:number], self._times_ns[:number]


class DelayLevel:
    """One level under one mastership. `changed` is set when messages have arrived, or the role is lost."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        deliveries: Deliveries,
        mastership: AnyMastership,
        level: int,
        delay_ms: int,
        changed: asyncio.Event,
    ) -> None:
        self.level = level
        self.changed = changed
        self._host = host
        self._store = store
        self._deliveries = deliveries
        self._mastership = mastership
        self._delay_ms = delay_ms
        self._cursor = store.delay_progress.offset(level)
        self._prefix = DeliveredPrefix(self._cursor)
        self._tries = 0
        self._read: deque[Message] = deque()
        self._arrivals = Arrivals()
        self._arrivals.note(store.queue_range(SCHEDULE_TOPIC, level - 1)[1], host.clock.monotonic_ns())

    def arrived(self, end: int) -> None:
        self._arrivals.note(end, self._host.clock.monotonic_ns())
        self.changed.set()

    async def deliver_due(self) -> float | None:
        """Deliver one after the other what is due; in how many seconds to look again, None: when more has arrived."""
        while not self._mastership.ended:
            message = self._next()
            if message is None:
                return None
            wait_s = self._due_in_s(message)
            if wait_s > 0:
                return min(wait_s, LOOK_S)
            self._tries += 1
            if not await self._deliver(message, self._tries):
                return RETRY_S
            self._passed()
        return None

    async def deliver_side_by_side(self, limit: int) -> float | None:
        """As `deliver_due`, without waiting for one before the next; at most `limit` under way."""
        while not self._mastership.ended:
            message = self._next()
            if message is None:
                return None
            wait_s = self._due_in_s(message)
            if wait_s > 0:
                return min(wait_s, LOOK_S)
            if self._cursor - self._prefix.end >= limit:
                return RETRY_S
            self._passed()
            self._host.spawn(self._deliver_by_itself(message), f"delayed message {message.queue_offset}")
        return None

    async def _deliver_by_itself(self, message: Message) -> None:
        tries = 1
        while not self._mastership.ended and not await self._deliver(message, tries):
            tries += 1
            await self._host.clock.sleep(RETRY_S * min(tries, 10))

    async def _deliver(self, message: Message, tries: int) -> bool:
        """Whether it is done: the `tries`-th time it is tried, from 1 on."""
        new = due(message)
        if new is None:
            self._host.log("undelivered", offset=message.physical_offset, reason="it does not say where it belongs")
            self._delivered(message, 0)
            return True
        end = await self._deliveries.attempt(self._mastership, message, new)
        if end is None:
            return False
        self._host.reached("delayed-message-delivered")
        self._delivered(message, end)
        return True

    def _delivered(self, message: Message, end: int) -> None:
        """The copy lies before `end` of the log, and is confirmed."""
        if not self._mastership.ended and self._prefix.delivered(message.queue_offset, end):
            self._store.delay_progress.delivered(self.level, self._prefix.end, self._prefix.copies_end)

    def _next(self) -> Message | None:
        if not self._read:
            messages, first = read_waiting(self._store, SCHEDULE_TOPIC, self.level - 1, self._cursor, READ_COUNT)
            if first > self._cursor:
                self._host.log("undelivered", level=self.level, before=first, reason="files have expired")
                self._cursor = first
                self._prefix.begins_at(first)
            self._read.extend(messages)
        return self._read[0] if self._read else None

    def _passed(self) -> None:
        self._read.popleft()
        self._cursor += 1
        self._tries = 0
        self._arrivals.passed(self._cursor)

    def _due_in_s(self, message: Message) -> float:
        clock = self._host.clock
        wait_ns = (message.store_timestamp_ms + self._delay_ms) * 1_000_000 - clock.wall_ns()
        arrived_ns = self._arrivals.arrived_ns(message.queue_offset)
        if arrived_ns is not None:
            wait_ns = min(wait_ns, arrived_ns + self._delay_ms * 1_000_000 - clock.monotonic_ns())
        return wait_ns / 1e9


class DelayService:
    """Runs the levels from the begin of a mastership to its end."""

    def __init__(
        self, broker: BrokerContext, deliveries: Deliveries, delay_level: type[DelayLevel] = DelayLevel
    ) -> None:
        self._host, self._store, self._config = broker.host, broker.store, broker.config
        self._deliveries = deliveries
        self._delay_level = delay_level
        self._levels: Sequence[DelayLevel] = ()
        broker.store.on_dispatched.append(self._dispatched)

    def begin(self, mastership: AnyMastership) -> None:
        """The role is taken; consume queues reach to the confirm offset."""
        delays_ms = self._config.delays.levels.delays_ms
        mode = self._config.delays.delivery
        shared = asyncio.Event() if mode is DelayDelivery.SINGLE else None
        self._levels = [
            self._delay_level(
                self._host, self._store, self._deliveries, mastership, level, delay_ms, shared or asyncio.Event()
            )
            for level, delay_ms in enumerate(delays_ms, 1)
        ]
        mastership.on_end.append(self._end)
        if mode is DelayDelivery.SINGLE:
            self._host.spawn(self._serve(mastership, self._levels), "delay levels")
            return
        for level in self._levels:
            self._host.spawn(self._serve(mastership, [level]), f"delay level {level.level}")

    def _end(self) -> None:
        for level in self._levels:
            level.changed.set()
        self._levels = ()

    def _dispatched(self, topic: str, queue_id: int, end: int) -> None:
        if topic == SCHEDULE_TOPIC and queue_id < len(self._levels):
            self._levels[queue_id].arrived(end)

    async def _serve(self, mastership: AnyMastership, levels: Sequence[DelayLevel]) -> None:
        changed = levels[0].changed
        while not mastership.ended:
            changed.clear()
            waits = [await self._deliver_due(level) for level in levels]
            wait_s = min((wait_s for wait_s in waits if wait_s is not None), default=None)
            if mastership.ended:
                return
            if wait_s is None:
                await changed.wait()
            elif len(levels) == 1:
                await self._host.clock.sleep(wait_s)
            else:
                await self._look_again(changed, wait_s)

    async def _deliver_due(self, level: DelayLevel) -> float | None:
        if self._config.delays.delivery is DelayDelivery.ASYNC:
            return await level.deliver_side_by_side(self._config.delays.pending)
        return await level.deliver_due()

    async def _look_again(self, changed: asyncio.Event, wait_s: float) -> None:
        """When something has arrived, for it may be due before what waits already, or after `wait_s`."""
        try:
            await self._host.clock.within(wait_s, changed.wait())
        except TimeoutError:
            return
