"""Until when a decision is worth waiting for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

LONGEST_WAIT_S = 1e6
"""What a timer takes for ever."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Looked at between steps, each of which is bounded: what has begun is finished."""

    at_s: float = inf
    """On the clock of `time.monotonic`."""

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """None: there is none."""
        return cls() if seconds is None else cls(at_s=time.monotonic() + seconds)

    @classmethod
    def until(cls, time_s: float | None) -> Deadline:
        """On the clock of the day, which other processes have as well; None: there is none."""
        return cls.after(None if time_s is None else time_s - time.time())

    @property
    def left_s(self) -> float:
        return min(max(self.at_s - time.monotonic(), 0.0), LONGEST_WAIT_S)

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.at_s


NEVER_GIVEN_UP = Deadline()
