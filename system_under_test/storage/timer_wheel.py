"""A wheel of time: messages by the slot in which they are due, and how far the wheel is done.

A state machine without clock: its caller says what time it is. A slot of `precision_ms` is named by its begin,
and is due when it is over, so nothing comes out early. What is due beyond the window waits in its last slot only to be
written to the topic once more, from where it comes back (it rolls): so one turn of the wheel never holds two times in
one slot, and what waits is never older in the topic than a window.

What has to survive of it is a checkpoint of three numbers. All in the topic before `queue_offset` whose slot is before
`read_ms` is done, and so is all before `floor`. What came into the wheel too late for its own slot waits in the next
one that is taken; until that one is done, `queue_offset` does not pass it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from system_under_test.storage.timer_log import MAGIC, MAGIC_DELETE, MAGIC_ROLL, NONE, TimerLog, TimerUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerCheckpoint:
    read_ms: int = 0
    queue_offset: int = 0
    floor: int = 0

    def is_done(self, queue_offset: int, slot_ms: int) -> bool:
        """Whether the message there, due in that slot, has been delivered, as far as this says."""
        return queue_offset < self.floor or (queue_offset < self.queue_offset and slot_ms < self.read_ms)


@dataclass(frozen=True, slots=True)
class Placement:
    slot_ms: int
    rolls: bool


def place(due_ms: int, now_ms: int, window_ms: int, precision_ms: int) -> Placement:
    """In which slot a message waits that is due in the slot `due_ms`, if the wheel reaches `window_ms` from now."""
    beyond_ms = due_ms - now_ms - window_ms
    if beyond_ms < 0:
        return Placement(due_ms, False)
    # Rolled into the window's last slot it could be due right after: then half a window now leaves half for later.
    wait_ms = window_ms // 2 if beyond_ms < window_ms // 3 else window_ms
    return Placement((now_ms + wait_ms) // precision_ms * precision_ms, True)


class WheelFull(Exception):
    """What is due has not been delivered for so long that the wheel has come round to it."""


@dataclass(slots=True)
class _Slot:
    time_ms: int
    last: int = NONE
    """Position of its newest unit."""
    least: int = 0
    """The least queue offset in it."""


@dataclass(frozen=True, slots=True)
class DueSlot:
    time_ms: int
    units: tuple[TimerUnit, ...]
    """Ordered by the time at which they came in."""


Place = Callable[[int, int, int, int], Placement]


class TimerWheel:
    """`slots`: so many the wheel has; what waits is due within `window_slots` of them, less than half."""

    def __init__(
        self, log: TimerLog, *, precision_ms: int, slots: int, window_slots: int, place: Place = place
    ) -> None:
        self._log = log
        self._precision_ms = precision_ms
        self._slots_total = slots
        self._window_ms = window_slots * precision_ms
        self._place = place
        self._slots: dict[int, _Slot] = {}
        """By their number on the wheel."""
        self._times: list[int] = []
        """A heap of their times."""
        self._late: dict[int, None] = {}
        self._rolled: dict[int, None] = {}
        self.read_ms = 0
        self.next_queue_offset = 0

    def begin(self, checkpoint: TimerCheckpoint, now_ms: int) -> None:
        """Be empty, and done as far as `checkpoint` says. What is not done is to be added, from its floor on."""
        self._log.clear()
        self._slots.clear()
        self._times.clear()
        self._late.clear()
        self._rolled.clear()
        # What is due from longer ago than the wheel reaches back waits in the first slot that it has.
        oldest_ms = now_ms - self._slots_total * self._precision_ms + 2 * self._window_ms
        self.read_ms = self._slot_ms(min(max(checkpoint.read_ms, oldest_ms), now_ms))
        self.next_queue_offset = checkpoint.floor

    def add(
        self,
        due_ms: int,
        unit_offset: int,
        size: int,
        queue_offset: int,
        now_ms: int,
        rolled_from: int | None = None,
        *,
        takes_back: bool = False,
    ) -> None:
        """The message at `queue_offset`, the next one of the topic, is due in the slot of `due_ms`.

        `rolled_from` is the queue offset of the one that it was written in place of. Raises WheelFull and DiskFull:
        nothing changed.
        """
        placed = self._place(self._slot_ms(due_ms), now_ms, self._window_ms, self._precision_ms)
        slot_ms = max(placed.slot_ms, self.read_ms)
        number = self._number(slot_ms)
        slot = self._slots.get(number)
        if slot is not None and slot.time_ms != slot_ms:
            raise WheelFull(f"{slot_ms} ms is a turn of the wheel away from {slot.time_ms} ms, which is not done")
        magic = MAGIC | (MAGIC_ROLL if placed.rolls else 0) | (MAGIC_DELETE if takes_back else 0)
        previous = NONE if slot is None else slot.last
        unit = TimerUnit(previous, magic, now_ms, _int32(slot_ms - now_ms), unit_offset, size, queue_offset)
        position = self._log.append(unit)
        if slot is None:
            slot = self._slots[number] = _Slot(slot_ms, least=queue_offset)
            heapq.heappush(self._times, slot_ms)
        slot.last = position
        if slot_ms > placed.slot_ms:
            self._late[queue_offset] = None
        if rolled_from is not None:
            self._rolled[rolled_from] = None
        self.next_queue_offset = queue_offset + 1

    def passed_over(self, queue_offset: int) -> None:
        """The next one of the topic is done already, or is no timer."""
        self.next_queue_offset = queue_offset + 1

    def due(self, now_ms: int, most: int = 1) -> tuple[DueSlot, ...]:
        """The earliest slots that are over, without the messages that were rolled by an earlier master; no more once
        they hold `most` of them.

        Raises DiskError.
        """
        taken: list[int] = []
        found: list[DueSlot] = []
        try:
            while self._is_due(now_ms) and sum(len(slot.units) for slot in found) < most:
                taken.append(heapq.heappop(self._times))
                found.append(DueSlot(taken[-1], self._units(taken[-1])))
        finally:
            for time_ms in taken:
                heapq.heappush(self._times, time_ms)
        return tuple(found)

    def _is_due(self, now_ms: int) -> bool:
        return bool(self._times) and self._times[0] + self._precision_ms <= now_ms

    def _units(self, time_ms: int) -> tuple[TimerUnit, ...]:
        units = []
        position = self._slots[self._number(time_ms)].last
        while position != NONE:
            unit = self._log.read(position)
            if unit.queue_offset not in self._rolled:
                units.append(unit)
            position = unit.previous
        return tuple(reversed(units))

    def done(self, due: DueSlot) -> None:
        """All of the earliest slot is delivered, and nothing more may be added to it."""
        heapq.heappop(self._times)
        position = self._slots.pop(self._number(due.time_ms)).last
        while position != NONE:
            unit = self._log.read(position)
            self._late.pop(unit.queue_offset, None)
            self._rolled.pop(unit.queue_offset, None)
            self._log.release(position)
            position = unit.previous
        self.read_ms = max(self.read_ms, due.time_ms + self._precision_ms)

    def turn(self, now_ms: int) -> None:
        """Nothing is due. A clock that went back takes the wheel back with it: what comes in then is not late."""
        self.read_ms = self._slot_ms(now_ms)

    def wait_ms(self, now_ms: int) -> int | None:
        """Until the next slot is due; None: there is none."""
        return max(0, self._times[0] + self._precision_ms - now_ms) if self._times else None

    @property
    def waits(self) -> bool:
        """Whether there is anything in it."""
        return bool(self._times)

    def checkpoint(self) -> TimerCheckpoint:
        """Costs a look at each slot that is not empty."""
        # Both are in the order of the queue: the first of each is the least.
        late = next(iter(self._late), self.next_queue_offset)
        floor = min((slot.least for slot in self._slots.values()), default=self.next_queue_offset)
        return TimerCheckpoint(read_ms=self.read_ms, queue_offset=late, floor=floor)

    def _slot_ms(self, time_ms: int) -> int:
        return time_ms // self._precision_ms * self._precision_ms

    def _number(self, slot_ms: int) -> int:
        return slot_ms // self._precision_ms % self._slots_total


def _int32(number: int) -> int:
    return max(-(2**31), min(number, 2**31 - 1))
