"""Turns the wheel of timers, at the master: what is sent to be due at any time comes out then.

The wheel is made of the replicated topic of timers when a mastership begins, from where the checkpoint says that all
before is done; so it is right after any master, and a checkpoint that lags costs messages that come again. The
price is to read what waits once more: at most what was written within a window, as what waits longer is written anew.

Times are those of the wall clock, as in RocketMQ: where clocks differ a message may be early, or, if it names a time,
late, by what they differ. When the clock goes back the wheel is made anew, so that a span that was added to a wrong
time is shortened to what it may be.

What takes a timer back counts if it was acknowledged before that one was due: of what is due by some time nothing comes
out before all is in the wheel that was in the topic at that time, however much there is.
"""

from __future__ import annotations

import asyncio

from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.delayed.delivery import Deliveries, read_waiting
from system_under_test.rocketmq.broker.delayed.timer_messages import (
    OUT_MS,
    Named,
    named,
    out_ms,
    rolled,
    rolled_from,
    takes_back,
    timer_due,
)
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.topic import TIMER_TOPIC
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.message import Message
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.timer_log import TimerLog, TimerUnit
from system_under_test.storage.timer_wheel import DueSlot, Place, TimerWheel, WheelFull, place

RETRY_S = 0.1
LOOK_S = 1.0
"""A wall clock that jumps is noticed after this time."""
READ_COUNT = 32
SIDE_BY_SIDE = 1000
"""So many messages are delivered at once."""


class Turning:
    """The wheel of one mastership, from its begin on."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        deliveries: Deliveries,
        mastership: AnyMastership,
        wheel: TimerWheel,
        precision_ms: int,
    ) -> None:
        self._host = host
        self._store = store
        self._deliveries = deliveries
        self._mastership = mastership
        self._wheel = wheel
        self._precision_ms = precision_ms
        self._checkpoint = store.timer_progress.checkpoint
        self.past_end = store.queue_end(TIMER_TOPIC, 0)
        """What is before it in the topic may be there twice: as it was, and as an earlier master rolled it."""
        self._due_ms, self._due_end = 0, 0
        """What is due by this time comes out once all before that place in the topic is in the wheel."""
        self._copies_end = 0
        self._noted_ns = 0
        self._seen_ms = self._now_ms()
        wheel.begin(self._checkpoint, self._seen_ms)

    async def turn(self) -> float | None:
        """Take in what has come, deliver what is due; in how many seconds to look again, None: when more has come."""
        now_ms = self._now_ms()
        if now_ms + self._precision_ms < self._seen_ms:
            self._host.reached("timers-read-again")
            self._checkpoint = self._wheel.checkpoint()
            self._wheel.begin(self._checkpoint, now_ms)
        self._seen_ms = now_ms
        if self._wheel.next_queue_offset >= self._due_end:
            self._due_ms, self._due_end = now_ms, self._store.queue_range(TIMER_TOPIC, 0)[1]
        is_blocked = is_full = has_more = False
        try:
            has_more = self._take_in(now_ms)
        except (DiskFull, WheelFull) as error:
            self._host.log("timers_wait", reason=str(error))
            is_blocked, is_full = True, isinstance(error, WheelFull)
        if has_more:
            # There may be many: others have their turn, too.
            await self._host.clock.sleep(0)
        has_left = has_more or (is_blocked and not is_full)
        is_behind = has_left and self._wheel.next_queue_offset < max(self.past_end, self._due_end)
        # Where the wheel has no room, what is due has to make some first.
        until_ms = now_ms if is_full else min(now_ms, self._due_ms)
        if (not is_behind and await self._deliver_due(until_ms)) or has_more:
            return 0.0
        if self._mastership.ended:
            return None
        if is_blocked:
            return LOOK_S
        self._wheel.turn(until_ms)
        self._note()
        wait_ms = self._wheel.wait_ms(now_ms)
        return None if wait_ms is None else wait_ms / 1000

    def _take_in(self, now_ms: int) -> bool:
        """Whether there was something to take in. Raises DiskFull, WheelFull: later."""
        wheel = self._wheel
        messages, first = read_waiting(self._store, TIMER_TOPIC, 0, wheel.next_queue_offset, READ_COUNT)
        if first > wheel.next_queue_offset:
            self._host.log("undelivered", before=first, reason="files have expired")
            wheel.passed_over(first - 1)
        for message in messages:
            self._add(message, now_ms)
        return bool(messages)

    def _add(self, message: Message, now_ms: int) -> None:
        wheel, offset = self._wheel, message.queue_offset
        due_ms = out_ms(message, now_ms)
        if due_ms is None or self._checkpoint.is_done(offset, int(message.properties[OUT_MS])):
            wheel.passed_over(offset)
            return
        origin = rolled_from(message) if offset < self.past_end else None
        is_back = takes_back(message) is not None
        wheel.add(due_ms, message.physical_offset, message.size, offset, now_ms, origin, takes_back=is_back)

    async def _deliver_due(self, now_ms: int) -> bool:
        """Whether something was due and is delivered. Slots do not wait for each other: where replicas are far away
        each would take as long as they need to confirm it."""
        due = self._wheel.due(now_ms, SIDE_BY_SIDE)
        units = [unit for slot in due for unit in slot.units]
        last_ms = due[-1].time_ms if due else 0
        taken_back = frozenset(filter(None, map(self.taken_back, units)))
        for first in range(0, len(units), SIDE_BY_SIDE):
            tasks = [
                self._host.spawn(self._deliver(unit, taken_back, last_ms), f"timer {unit.queue_offset}")
                for unit in units[first : first + SIDE_BY_SIDE]
            ]
            await asyncio.wait(tasks)
            if self._mastership.ended:
                return False
        for slot in due:
            self._finish(slot)
        return bool(due)

    def _finish(self, due: DueSlot) -> None:
        self._wheel.done(due)
        self._note()

    def _note(self) -> None:
        """How far the wheel is, once a second at most: to find that out it has to look at all of its slots."""
        now_ns = self._host.clock.monotonic_ns()
        if now_ns - self._noted_ns >= 1_000_000_000 or not self._wheel.waits:
            self._noted_ns = now_ns
            self._store.timer_progress.note(self._wheel.checkpoint(), self._copies_end)

    def taken_back(self, unit: TimerUnit) -> Named | None:
        """What this unit takes back of what is due."""
        message = self._message(unit) if unit.takes_back else None
        return None if message is None else takes_back(message)

    def _message(self, unit: TimerUnit) -> Message | None:
        messages, first = read_waiting(self._store, TIMER_TOPIC, 0, unit.queue_offset, 1)
        return messages[0] if messages and first == unit.queue_offset else None

    async def _deliver(self, unit: TimerUnit, taken_back: frozenset[Named], last_ms: int) -> None:
        """Until it is done, or the role is lost. `last_ms`: the last of the slots that are due together."""
        message = self._message(unit)
        # What rolls so late that its own slot is among them would come back to a wheel which has left that one behind,
        # with what takes it back.
        rolls = unit.rolls and message is not None and (out_ms(message, unit.written_ms) or 0) > last_ms
        if message is not None and not rolls and (unit.takes_back or named(message) in taken_back):
            self._host.reached("timer-taken-back")
            return
        new = None
        if message is not None:
            new = rolled(message, unit.written_ms) if rolls else timer_due(message)
        if message is None or new is None:
            self._host.log("undelivered", offset=unit.physical_offset, reason="it has expired, or belongs nowhere")
            return
        tries = 0
        while not self._mastership.ended:
            end = await self._deliveries.attempt(self._mastership, message, new)
            if end is not None:
                self._copies_end = max(self._copies_end, end)
                self._host.reached("timer-delivered")
                return
            tries += 1
            await self._host.clock.sleep(RETRY_S * min(tries, 10))

    def _now_ms(self) -> int:
        return self._host.clock.wall_ns() // 1_000_000


class TimerService:
    def __init__(
        self, broker: BrokerContext, deliveries: Deliveries, place: Place = place, turning: type[Turning] = Turning
    ) -> None:
        self._host, self._store = broker.host, broker.store
        self._deliveries = deliveries
        self._settings = broker.config.timer
        self._place = place
        self._turning = turning
        self._log = TimerLog(self._host.disk, f"{broker.config.store_path}/timerlog", self._settings.log_file_bytes)
        self._arrived = asyncio.Event()
        broker.store.on_dispatched.append(self._dispatched)

    def begin(self, mastership: AnyMastership) -> None:
        """The role is taken; consume queues reach to the confirm offset."""
        mastership.on_end.append(self._arrived.set)
        self._host.spawn(self._serve(mastership), "timers")

    def _dispatched(self, topic: str, queue_id: int, end: int) -> None:
        if topic == TIMER_TOPIC:
            self._arrived.set()

    async def _serve(self, mastership: AnyMastership) -> None:
        settings = self._settings
        wheel = TimerWheel(
            self._log,
            precision_ms=settings.precision_ms,
            slots=settings.slots,
            window_slots=settings.window_slots,
            place=self._place,
        )
        turning = self._turning(self._host, self._store, self._deliveries, mastership, wheel, settings.precision_ms)
        while not mastership.ended:
            self._arrived.clear()
            wait_s = await turning.turn()
            if mastership.ended:
                return
            if wait_s is None:
                await self._arrived.wait()
            elif wait_s > 0:
                try:
                    await self._host.clock.within(min(wait_s, LOOK_S), self._arrived.wait())
                except TimeoutError:
                    continue
