"""What a run or a check is doing right now, as values for those who watch it.

The code that does the work reports lines, which say that something began, and moments, which say how far it is. A
moment is made of what was recorded anyway: reporting one reads no clock, draws nothing from a seed and waits for
nobody, so a run that is watched is the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.operation import Operation
from harness.record.fault_row import FaultRow

TARGETS_NAMED = 3
"""So many targets of a fault are named, and how many more it has."""


class Moment(NamedTuple):
    doing: str
    """What is being done, in a few words."""
    at_s: float = 0.0
    """The time on the clock of the run, which in the simulator is not the watcher's."""
    left_s: float | None = None
    """What is left on the same clock; None where nobody knows."""
    ok: int = 0
    failed: int = 0
    unknown: int = 0
    """Operations that completed so far."""
    faults: tuple[str, ...] = ()
    """Those that stand, in words."""
    detail: str = ""
    """How far it is, in words; where it is the same that is being done, the time goes on."""


class Remark(NamedTuple):
    """A line that is shown also to those who do not watch."""

    line: str


Progress = Callable[[str | Moment | Remark], None]
"""Takes a line, a moment that takes the place of the one before, or a remark."""


def unwatched(_: str | Moment | Remark) -> None:
    """Nobody watches."""


class RunProgress:
    """Counts what a run records, and reports it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._doing = ""
        self._until_ns: int | None = None
        self._counts = {"ok": 0, "fail": 0, "info": 0}
        self._standing: dict[tuple[str, int], str] = {}
        """By package and number."""

    def begin(self, doing: str, *, until_ns: int | None = None) -> None:
        """What is being done from now on, and until when on the run's own clock, if that is known."""
        self._doing, self._until_ns = doing, until_ns
        self._progress(Moment(doing))

    def completed(self, operation: Operation) -> None:
        """An operation of a client; how far the run is, is known from its time."""
        self._counts[operation.type] += 1
        ok, failed, unknown = self._counts.values()
        left_s = None if self._until_ns is None else max(self._until_ns - operation.time, 0) / 1e9
        self._progress(
            Moment(self._doing, operation.time / 1e9, left_s, ok, failed, unknown, tuple(self._standing.values()))
        )

    def struck(self, row: FaultRow) -> None:
        """A fault stands from its start, if it had an effect, to its stop."""
        if not row.starts:
            self._standing.pop(row.key, None)
        elif row.happened:
            self._standing[row.key] = _words(row.shape or row.kind, row.nodes)


def _words(what: str, targets: tuple[str, ...]) -> str:
    more = len(targets) - TARGETS_NAMED
    named = ", ".join(targets[:TARGETS_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{what} ({named})" if named else what
