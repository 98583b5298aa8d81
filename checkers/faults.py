"""The faults that struck in a run, as numbers that kernels can count by, and which of them is blamed for what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int64
from harness.record.fault_log import FaultWindow

NO_FAULT = -1

IN_FLIGHT_NS = 1_000_000_000
"""How long before a fault an operation may have been called and still be hit by the fault on its way."""

AFTERMATH_NS = 30_000_000_000
"""How long after the end of a fault something may begin that is blamed on it."""


@dataclass(frozen=True, kw_only=True)
class Faults:
    """The faults with an effect, by start. The position of a fault is its number. Small; passed to every kernel."""

    names: tuple[str, ...]
    start_ns: Int64
    stop_ns: Int64

    @classmethod
    def of(cls, struck: Iterable[FaultWindow]) -> Faults:
        """From faults in any order."""
        windows = sorted(struck, key=lambda window: (window.start_ns, window.stop_ns, window.name))
        return cls(
            names=tuple(window.name for window in windows),
            start_ns=np.array([window.start_ns for window in windows], dtype=np.int64),
            stop_ns=np.array([window.stop_ns for window in windows], dtype=np.int64),
        )

    def to_blame_for_outages(self, began_ns: Int64, failed_ns: Int64) -> Int64:
        """For each outage the fault that struck last before it, NO_FAULT if there is none.

        `began_ns`: its first failed operation was called, `failed_ns`: it failed. What struck in between counts, if it
        came soon after the call.
        """
        latest = np.searchsorted(self.start_ns, np.minimum(failed_ns, began_ns + IN_FLIGHT_NS), side="right") - 1
        if not len(self.names):
            return latest
        long_over = (latest >= 0) & (began_ns > self.stop_ns[latest] + AFTERMATH_NS)
        return np.where(long_over, NO_FAULT, latest)

    def to_blame_for_losses(self, acked_ns: Int64) -> Int64:
        """For each lost message the first fault that was not over when it was acknowledged, NO_FAULT if all were."""
        if not len(self.names):
            return np.full(len(acked_ns), NO_FAULT, dtype=np.int64)
        order = np.argsort(self.stop_ns, kind="stable")
        # Of the faults that stop at or after a time, the one that began first: their numbers go by start.
        first = np.minimum.accumulate(order[::-1])[::-1]
        at = np.searchsorted(self.stop_ns[order], acked_ns, side="left")
        return np.where(at < len(order), first[np.minimum(at, len(order) - 1)], NO_FAULT)
