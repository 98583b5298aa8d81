"""The trace of a run: every event of the simulator, in order, boiled down to a rolling hash.

Two runs of one scenario must have equal hashes, whatever the process, the machine or PYTHONHASHSEED. A hash
is kept every thousand events, which bounds where two runs part; a recording, which costs time and is
therefore made on demand, names the very event and the line of code that caused it.

The hash covers time, owner, kind and detail of each event, not its source line, so that moving code about
changes no hash.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import Final

CHECKPOINT_EVENTS: Final = 1000
_LINE: Final = "%d\t%s\t%s\t%s\n"
_FIELDS: Final = 4
_CHECKPOINT_PENDING: Final = CHECKPOINT_EVENTS * _FIELDS
_OWN_CODE: Final = ("harness/trace.py", "harness/environments/simulated/", "/asyncio/")
_KERNEL: Final = "_run_until"
"""The function of the simulator's loop in which everything runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """One line of a recording."""

    index: int
    time_ns: int
    owner: str
    kind: str
    detail: str
    source: str
    """`file:line` of the node's or harness's code that caused it; `kernel` where the simulator itself did."""

    def __str__(self) -> str:
        return f"event {self.index} at {self.time_ns} ns: {self.owner} {self.kind} {self.detail} ({self.source})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place where two recordings part; None for the one that ended before."""

    left: TraceEvent | None
    right: TraceEvent | None

    def __str__(self) -> str:
        left = str(self.left) if self.left else "the trace ended"
        right = str(self.right) if self.right else "the trace ended"
        return f"left:  {left}\nright: {right}"


class Trace:
    """Collects events; hashes them a thousand at a time, for it is called for everything that happens."""

    __slots__ = ("_checkpoints", "_closed", "_count", "_hash", "_pending", "_recording")

    def __init__(self, *, recording: Path | None = None) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._pending: list[int | str] = []
        """Four of each event, one after the other."""
        self._count = 0
        self._checkpoints: list[str] = []
        self._recording = recording.open("w", encoding="utf-8") if recording is not None else None
        self._closed = False

    def event(self, time_ns: int, owner: str, kind: str, detail: str) -> None:
        if self._closed:
            return
        pending = self._pending
        pending += (time_ns, owner, kind, detail)
        if self._recording is not None:
            line = json.dumps([time_ns, owner, kind, detail, _source(sys._getframe(1))], ensure_ascii=False)
            self._recording.write(line + "\n")
        if len(pending) == _CHECKPOINT_PENDING:
            self._flush()
            self._checkpoints.append(self._hash.hexdigest())

    @property
    def count(self) -> int:
        """How many events there were."""
        return self._count + len(self._pending) // _FIELDS

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The hash after each thousand events."""
        return tuple(self._checkpoints)

    def digest(self) -> str:
        """The hash of all events so far."""
        self._flush()
        return self._hash.hexdigest()

    def close(self) -> None:
        """Take no more events and finish the recording; idempotent."""
        self._closed = True
        self._flush()
        if self._recording is not None:
            self._recording.close()
            self._recording = None

    def _flush(self) -> None:
        if self._pending:
            events = len(self._pending) // _FIELDS
            self._hash.update((_LINE * events % tuple(self._pending)).encode("utf-8", "surrogatepass"))
            self._count += events
            self._pending.clear()


def _source(frame: FrameType | None) -> str:
    """The nearest frame outside the simulator's own machinery."""
    while frame is not None:
        path = frame.f_code.co_filename
        if frame.f_code.co_name == _KERNEL:
            return "kernel"
        if not any(own in path for own in _OWN_CODE):
            return f"{_relative(path)}:{frame.f_lineno}"
        frame = frame.f_back
    return "kernel"


def _relative(path: str) -> str:
    root = str(Path(__file__).resolve().parent.parent) + "/"
    return path.removeprefix(root)


def first_difference(left: Path, right: Path) -> Difference | None:
    """The first event in which two recordings differ (source lines aside); None where they agree."""
    with left.open(encoding="utf-8") as left_lines, right.open(encoding="utf-8") as right_lines:
        for index, (a, b) in enumerate(zip_longest(left_lines, right_lines)):
            if a == b:
                continue
            left_event = _parse(index, a)
            right_event = _parse(index, b)
            if left_event is None or right_event is None or _key(left_event) != _key(right_event):
                return Difference(left=left_event, right=right_event)
    return None


def first_differing_checkpoint(left: Trace, right: Trace) -> int | None:
    """The number of the first thousand of events in which two traces differ; None where none is known to."""
    for index, (a, b) in enumerate(zip_longest(left.checkpoints, right.checkpoints)):
        if a != b:
            return index
    return None


def _parse(index: int, line: str | None) -> TraceEvent | None:
    if line is None:
        return None
    time_ns, owner, kind, detail, source = json.loads(line)
    return TraceEvent(index=index, time_ns=time_ns, owner=owner, kind=kind, detail=detail, source=source)


def _key(event: TraceEvent) -> tuple[int, str, str, str]:
    return event.time_ns, event.owner, event.kind, event.detail
