"""How many messages a second a broker has written of late: as RocketMQ says it, for 10 seconds, a minute and ten."""

from __future__ import annotations

from collections import deque

from system_under_test.runtime.host import Clock

SPANS_S = (10, 60, 600)
SECOND_NS = 1_000_000_000


class PutRate:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: deque[list[int]] = deque(maxlen=SPANS_S[-1])
        """(second, messages) of those in which there were any, oldest first."""

    def note(self, messages: int) -> None:
        second = self._clock.monotonic_ns() // SECOND_NS
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += messages
        else:
            self._seconds.append([second, messages])

    def __str__(self) -> str:
        """Of the spans that end with the last whole second."""
        now = self._clock.monotonic_ns() // SECOND_NS
        rates = (
            sum(count for second, count in self._seconds if now - span_s <= second < now) / span_s for span_s in SPANS_S
        )
        return " ".join(f"{rate:g}" for rate in rates)
