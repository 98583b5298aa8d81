"""Which of the points that a system declares were reached in a run, and which faults struck there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.record.fault_log import FaultWindow


def points_of(
    declared: Iterable[str], reached: Mapping[str, int], windows: Iterable[FaultWindow]
) -> dict[str, dict[str, Any]]:
    """{point: {"reached": how often, "struck_by": shapes of faults that had an effect there}}, as declared."""
    struck: dict[str, list[str]] = {}
    for window in windows:
        if window.happened and window.point:
            struck.setdefault(window.point, []).append(window.shape)
    return {
        point: {"reached": reached.get(point, 0), "struck_by": list(dict.fromkeys(struck.get(point, ())))}
        for point in declared
    }
