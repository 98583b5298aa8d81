"""Monotonic reads: what a process has read of a register that only grows, it never reads smaller again.

Operations (key: the register): `inc` {}, and `read` {}: ok with what the register holds.
"""

from __future__ import annotations

from checkers.evidence import any_ok
from checkers.monotonic import TOLD_VALUES, MonotonicChecker
from harness.workload import Workload

WORKLOAD = Workload(
    name="monotonic",
    about="what a process has read it never reads smaller again",
    value_type=TOLD_VALUES,
    functions=("read", "inc"),
    evidence=any_ok("read", "inc"),
    checkers=lambda settings: {"monotonic": MonotonicChecker()},
    anomalies=("nonmonotonic-read", "nonmonotonic-timestamp"),
)
