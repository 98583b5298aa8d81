"""Timers of what is slow: what they wait for becomes quicker, or slower still, with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from harness.environments.simulated.loop import TimerHandle, VirtualTimeLoop

USUAL: Final = 1.0
"""The factor of what is not slow."""


@dataclass(frozen=True, slots=True)
class _Wait:
    left_ns: float
    """What is left of the time that it takes where nothing is slow."""
    from_ns: int
    factor: float

    def left_at(self, now_ns: int) -> float:
        return max(0.0, self.left_ns - (now_ns - self.from_ns) / self.factor)


class SlowTimers:
    """Those of one machine's clock, or of one disk."""

    __slots__ = ("_loop", "_waits")

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self._waits: WeakKeyDictionary[TimerHandle, _Wait] = WeakKeyDictionary()

    def follow(self, timer: TimerHandle, left_ns: float, factor: float) -> None:
        """From now on it waits for `left_ns`, times so much."""
        self._waits[timer] = _Wait(left_ns, self._loop.now_ns, factor)

    def change_pace(self, factor: float) -> None:
        """Let all that still wait have the rest of their time at another factor."""
        now_ns = self._loop.now_ns
        moved: dict[TimerHandle, int] = {}
        for timer, wait in [*self._waits.items()]:
            if timer.when_ns > now_ns:
                left_ns = wait.left_at(now_ns)
                self.follow(timer, left_ns, factor)
                moved[timer] = now_ns + max(1, int(left_ns * factor))
        if moved:
            self._loop.move(moved)
