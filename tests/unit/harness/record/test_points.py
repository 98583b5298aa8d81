"""Which points a run reached, and which faults struck there."""

from __future__ import annotations

from harness.record.fault_log import FaultWindow
from harness.record.points import points_of


def struck(shape: str, point: str, *, happened: bool = True) -> FaultWindow:
    return FaultWindow(kind="kill", start_ns=1, stop_ns=2, shape=shape, point=point, happened=happened)


def test_every_declared_point_is_there_with_what_struck_it_once() -> None:
    windows = (
        struck("kill it when flushed", "flushed"),
        struck("kill it when flushed", "flushed"),
        struck("pause b1 after flushed", "flushed"),
        struck("kill it when log-cut", "log-cut", happened=False),
        struck("kill b1", ""),
    )
    assert points_of(("flushed", "log-cut", "recovered"), {"flushed": 7, "undeclared": 1, "recovered": 2}, windows) == {
        "flushed": {"reached": 7, "struck_by": ["kill it when flushed", "pause b1 after flushed"]},
        "log-cut": {"reached": 0, "struck_by": []},
        "recovered": {"reached": 2, "struck_by": []},
    }
