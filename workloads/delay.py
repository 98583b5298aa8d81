"""Delayed messages: what is due later is delivered then, and not before.

Operations: `send` {message, due}, `take-back` {message} and `deliver` {messages, places}; what they promise says
`checkers/elements/delay.py`. It is judged, not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import any_ok
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.delay import DELAYED, DelayChecker
from harness.bounds import INT64
from harness.workload import Workload


@dataclass(frozen=True, kw_only=True)
class DelaySettings:
    tolerance_ms: Annotated[int, INT64] = 0
    """A delivery may be so much too early: clocks differ."""
    latest_ms: Annotated[int | None, INT64] = None
    """So long after it was due a message must be delivered; otherwise any time will do."""

    again_ms: Annotated[int | None, INT64] = None
    """So long after its first delivery no other copy of a message may be delivered; otherwise any time will do."""


def checkers(settings: DelaySettings) -> dict[str, Checker]:
    return {
        "delay": DelayChecker(
            tolerance_ms=settings.tolerance_ms, latest_ms=settings.latest_ms, again_ms=settings.again_ms
        )
    }


WORKLOAD = Workload(
    name="delay",
    about="what is due later is delivered then, and not before",
    settings_type=DelaySettings,
    value_type=DELAYED,
    timed=True,
    functions=("send", "take-back", "deliver"),
    repeats=(members("send", "take-back", of=("message",)),),
    evidence=any_ok("deliver"),
    checkers=checkers,
)
