"""How far the wheel of timers is done, kept and copied to slaves as a checkpoint of it.

As with `delay_progress`: a checkpoint counts once the log is confirmed and durable to the end of all copies that were
delivered before it was made, and every cut of the log lowers it.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile
from system_under_test.storage.timer_wheel import TimerCheckpoint

TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
"""Where messages wait that are due at any time: all in queue 0."""
_ON_THE_WIRE: Final = struct.Struct(">qqqqqqq")
_MOST: Final = 2**62

QueueEnd = Callable[[str, int], int]
"""(topic, queue id) -> the offset at which the own queue ends."""


class TimerProgress:
    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self._noted: deque[tuple[int, TimerCheckpoint]] = deque()
        self._changed = False
        self.checkpoint = TimerCheckpoint()
        self.version = 0
        """Grows with each change. To make the versions of two processes differ, start it at different numbers."""

    def load(self) -> None:
        """Raises StorageCorrupt."""
        record = self._record.read()
        if record is not None:
            try:
                numbers = json.loads(record)
                self.checkpoint = _checked(numbers["readMs"], numbers["queueOffset"], numbers["floor"])
            except (ValueError, KeyError, TypeError) as error:
                raise StorageCorrupt(f"progress of timers: {error!r}") from error

    def note(self, checkpoint: TimerCheckpoint, end: int) -> None:
        """The wheel is so far; the log holds before `end` what it has delivered."""
        if checkpoint == (self._noted[-1][1] if self._noted else self.checkpoint):
            return
        if self._noted:
            end = max(end, self._noted[-1][0])
        self._noted.append((end, checkpoint))

    def settle(self, safe_end: int) -> None:
        """The log is confirmed and durable before `safe_end`."""
        while self._noted and self._noted[0][0] <= safe_end:
            self._set(self._noted.popleft()[1])

    def take(self, checkpoint: TimerCheckpoint, log_end: int, queue_end: QueueEnd) -> bool:
        """Be as a master's, as far as the own queue reaches; whether it reaches so far.

        The own log ends at `log_end` and has what was delivered, which may have to be made durable.
        """
        taken = _within(checkpoint, queue_end(TIMER_TOPIC, 0))
        self.note(taken, log_end)
        return taken == checkpoint

    def cut(self, log_end: int, queue_end: QueueEnd) -> None:
        """The log ends at `log_end`: what was delivered beyond it is not, what waited beyond it is no more."""
        self._noted = deque(note for note in self._noted if note[0] <= log_end)
        self._set(_within(self.checkpoint, queue_end(TIMER_TOPIC, 0)))

    async def persist(self) -> None:
        """Durable on return; nothing is written if nothing changed. Raises StorageFailed, DiskFull."""
        if self._changed:
            version, now = self.version, self.checkpoint
            numbers = {"readMs": now.read_ms, "queueOffset": now.queue_offset, "floor": now.floor}
            await self._record.write(json.dumps(numbers).encode())
            self._changed = self.version != version

    def _set(self, checkpoint: TimerCheckpoint) -> None:
        if checkpoint != self.checkpoint:
            self.checkpoint = checkpoint
            self._changed = True
            self.version += 1


def encode_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    """As RocketMQ's slaves are told: read time, position in the timer log, the queue offset that is done, the one that
    is read, and a data version."""
    return _ON_THE_WIRE.pack(checkpoint.read_ms, 0, checkpoint.floor, checkpoint.queue_offset, 0, 0, 0)


def decode_checkpoint(data: bytes) -> TimerCheckpoint:
    """Raises ValueError."""
    if len(data) != _ON_THE_WIRE.size:
        raise ValueError(f"a timer checkpoint has {_ON_THE_WIRE.size} bytes, not {len(data)}")
    read_ms, _, floor, queue_offset, *_ = _ON_THE_WIRE.unpack(data)
    return _checked(read_ms, queue_offset, floor)


def _checked(read_ms: object, queue_offset: object, floor: object) -> TimerCheckpoint:
    for number in (read_ms, queue_offset, floor):
        if type(number) is not int or not 0 <= number < _MOST:
            raise ValueError(f"a timer checkpoint needs three numbers from 0 on, got {number!r}")
    assert isinstance(read_ms, int) and isinstance(queue_offset, int) and isinstance(floor, int)
    return TimerCheckpoint(read_ms=read_ms, queue_offset=queue_offset, floor=floor)


def _within(checkpoint: TimerCheckpoint, queue_end: int) -> TimerCheckpoint:
    return replace(
        checkpoint, queue_offset=min(checkpoint.queue_offset, queue_end), floor=min(checkpoint.floor, queue_end)
    )
