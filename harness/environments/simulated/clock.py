"""Clocks of simulated hosts: a wall clock that may be wrong, and a quartz that is never quite right.

Wall time follows what the nemesis set: offset and rate. Monotonic time follows the machine's quartz, whose
small error is drawn once; it never goes back and knows nothing of wall time. Sleeping follows the quartz.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Final, Protocol, TypeVar

from harness.environments.simulated.loop import NANOSECONDS, Deadline, OnSet, TimerHandle, VirtualTimeLoop
from harness.environments.simulated.slow_timers import USUAL, SlowTimers
from harness.trace import Trace

T = TypeVar("T")

EPOCH_NS: Final = 1_767_225_600 * NANOSECONDS
"""True wall time when the test begins: 2026-01-01T00:00:00Z."""


class MachineClock:
    """The clocks of one machine; they go on while its process is dead."""

    __slots__ = (
        "_base_ns",
        "_boot_ns",
        "_loop",
        "_random",
        "_set_ns",
        "_shift_ns",
        "_slow_timers",
        "_timer_jitter_ns",
        "quartz",
        "rate",
        "stretch",
    )

    def __init__(self, loop: VirtualTimeLoop, draw: random.Random, quartz_ppm: float, timer_jitter_ms: float) -> None:
        self._loop = loop
        self._random = draw
        self.quartz = 1.0 + draw.uniform(-quartz_ppm, quartz_ppm) / 1e6
        self._boot_ns = draw.randrange(1, 10_000 * NANOSECONDS)
        self._timer_jitter_ns = timer_jitter_ms * 1e6
        self._set_ns = 0
        self._base_ns = EPOCH_NS
        self.rate = 1.0
        """Rate of the wall clock."""
        self.stretch = USUAL
        """How many times as long as it should a sleep lasts."""
        self._slow_timers = SlowTimers(loop)
        self._shift_ns = 0

    def set(self, *, offset_s: float, rate: float) -> None:
        """From now on wall time is true time * rate plus the offset; (0, 1) is the true time."""
        self._set_ns = self._loop.now_ns
        self._base_ns = EPOCH_NS + self._set_ns + round(offset_s * NANOSECONDS) + self._shift_ns
        self.rate = rate

    def shift(self, by_ns: int) -> None:
        """Wall time is further ahead by so much, beside whatever it is set to."""
        self._shift_ns += by_ns
        self._base_ns += by_ns

    def wall_ns(self) -> int:
        elapsed_ns = self._loop.now_ns - self._set_ns
        return self._base_ns + (elapsed_ns if self.rate == 1.0 else int(elapsed_ns * self.rate))

    def error_s(self) -> float:
        """How far wall time is from the truth."""
        return (self.wall_ns() - EPOCH_NS - self._loop.now_ns) / NANOSECONDS

    def monotonic_ns(self) -> int:
        return self._boot_ns + int(self._loop.now_ns * self.quartz)

    def wake_ns(self, seconds: float) -> int:
        """The true moment at which one wakes who sleeps for so many seconds of this quartz."""
        late_ns = self._random.random() * self._timer_jitter_ns
        return self._loop.now_ns + max(1, round(seconds * NANOSECONDS / self.quartz * self.stretch + late_ns))

    def on_set(self) -> OnSet | None:
        """What is to be told of a timer for a moment that `wake_ns` gave."""
        return self._follow if self.stretch != USUAL else None

    def set_stretch(self, stretch: float) -> None:
        """Also for those who sleep already, if time was stretched when they began."""
        self.stretch = stretch
        self._slow_timers.change_pace(stretch)

    def _follow(self, timer: TimerHandle) -> None:
        self._slow_timers.follow(timer, (timer.when_ns - self._loop.now_ns) / self.stretch, self.stretch)


class Sleeper(Protocol):
    """The process that uses a clock."""

    name: str
    alive: bool

    async def never(self) -> None: ...


class SimulatedClock:
    """`Clock` of the seam, for one host."""

    __slots__ = ("_loop", "_machine", "_process", "_trace", "monotonic_ns", "wall_ns")

    def __init__(self, process: Sleeper, machine: MachineClock, loop: VirtualTimeLoop, trace: Trace) -> None:
        self._process = process
        self._machine = machine
        self._loop = loop
        self._trace = trace
        self.wall_ns = machine.wall_ns
        self.monotonic_ns = machine.monotonic_ns

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        if not self._process.alive:
            await self._process.never()
        loop = self._loop
        when_ns = self._machine.wake_ns(seconds)
        self._trace.event(loop.now_ns, self._process.name, "sleep", str(when_ns))
        await loop.sleep_until(when_ns, self._machine.on_set())

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        if not self._process.alive:
            return await awaitable
        when_ns = self._machine.wake_ns(max(0.0, seconds))
        with Deadline(self._loop, when_ns, self._machine.on_set()):
            return await awaitable
