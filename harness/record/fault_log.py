"""The fault log of a run, `nemesis.jsonl`: a row for the start and the stop of each fault, with the effect read back.

The nemesis writes `FaultRow`s while the storm goes on; `read_fault_log` pairs starts with stops, and everybody who
judges or draws a run uses the `FaultWindow`s that come of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.client_names import is_client
from harness.errors import UsageError
from harness.reading import lines_kept
from harness.record.fault_row import FINAL_HEALING, FaultRow
from harness.record.healing import unhealed

QUORUM = "quorum"
"""The package of the fault that takes only nodes which the system can do without; meanwhile progress is demanded."""

ENDS_PROCESSES = ("kill", "power", "short-files", "lost-disk", "restart-loop", "shrink", "wipe")
"""Kinds of faults after which a node plays no role until it reports one again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultWindow:
    """One fault from its start to its stop."""

    kind: str
    nodes: tuple[str, ...] = ()
    start_ns: int
    stop_ns: int
    """When it was stopped; the last time in the log if it never was."""
    is_stopped: bool = True
    happened: bool = True
    """Whether its start had an effect."""
    package: str = ""
    shape: str = ""
    """What was done to whom, as in the schedule: `kill one of all`."""
    fault: Mapping[str, Any] | None = None
    evidence: str = ""
    """What was read back when it was started."""
    healing: str = ""
    """What was read back when it was stopped."""
    point: str = ""
    """The point that a node reached when it struck; empty for a fault that strikes at a time."""

    @property
    def name(self) -> str:
        return self.shape or " ".join((self.kind, *self.nodes))

    @property
    def kinds(self) -> tuple[str, ...]:
        """More than one, where faults struck at one moment."""
        return tuple(self.kind.split("+"))

    @property
    def down(self) -> tuple[str, ...]:
        """The nodes whose process it ended."""
        return tuple(
            str(node) for part in self.parts() if part.get("kind") in ENDS_PROCESSES for node in part.get("nodes", ())
        )

    def nodes_of(self, kind: str) -> tuple[str, ...]:
        """The nodes that a fault of this kind struck, where several struck at one moment."""
        return tuple(
            str(node) for part in self.parts() if part.get("kind") == kind for node in part.get("nodes", self.nodes)
        )

    @property
    def aimed_at(self) -> tuple[str, ...]:
        """The nodes that were meant: of a cut, which touches nearly all, the node that is an end of every link; of a
        link to a client, the client alone."""
        links = [set(filter(is_client, link)) or set(link) for part in self.parts() for link in part.get("links", ())]
        if not links:
            return self.nodes
        meant = set.intersection(*links) if len(links) > 2 else set.union(*links)
        meant |= {str(node) for part in self.parts() for node in part.get("nodes", ())}
        return tuple(sorted(meant))

    def parts(self) -> list[Mapping[str, Any]]:
        """The concrete faults, as JSON: several where they struck at one moment."""
        fault = self.fault or {"kind": self.kind, "nodes": self.nodes}
        return fault.get("faults") or [fault]


@dataclass(frozen=True, kw_only=True)
class FaultLog:
    """The faults of a run, also those without effect, by start."""

    windows: tuple[FaultWindow, ...] = ()
    unhealed: tuple[str, ...] = ()
    """Texts of those that had an effect which nothing undid."""
    left_to_the_end: tuple[str, ...] = ()
    """Texts of those that their own stop had not healed when the storm was over, so that the final healing did."""

    @classmethod
    def of(cls, rows: Iterable[FaultRow]) -> FaultLog:
        rows = tuple(rows)
        shapes = {row.key: row.name for row in rows if row.starts}
        late = (row for row in rows if not row.starts and row.shape == FINAL_HEALING and row.happened)
        return cls(
            windows=_paired(rows),
            unhealed=unhealed(rows),
            left_to_the_end=tuple(shapes.get(row.key, row.name) for row in late),
        )

    @property
    def struck(self) -> tuple[FaultWindow, ...]:
        """Those that had an effect."""
        return tuple(window for window in self.windows if window.happened)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """{"partition": {"applied": 3, "with_effect": 2}}, in the order in which kinds first began."""
        counts: dict[str, dict[str, int]] = {}
        for window in self.windows:
            count = counts.setdefault(window.kind, {"applied": 0, "with_effect": 0})
            count["applied"] += 1
            count["with_effect"] += window.happened
        return counts

    @property
    def progress_window(self) -> tuple[int, int] | None:
        """From the moment in which only nodes were down that the system can do without, until they came back, in ns;
        None where the run did not come so far."""
        demanded = [window for window in self.windows if window.package == QUORUM and window.is_stopped]
        return (demanded[-1].start_ns, demanded[-1].stop_ns) if demanded else None


def _paired(rows: tuple[FaultRow, ...]) -> tuple[FaultWindow, ...]:
    """A stop belongs to the start of the same package and number before it."""
    last_ns = max((row.time_ns for row in rows), default=0)
    open_: dict[tuple[str, int], FaultRow] = {}
    windows: list[FaultWindow] = []
    for row in rows:
        if row.starts:
            if row.key in open_:
                windows.append(_window(open_[row.key], None, last_ns))
            open_[row.key] = row
        elif row.key in open_:
            windows.append(_window(open_.pop(row.key), row, last_ns))
    windows += [_window(row, None, last_ns) for row in open_.values()]
    return tuple(sorted(windows, key=lambda window: (window.start_ns, window.kind, window.nodes)))


def _window(start: FaultRow, stop: FaultRow | None, last_ns: int) -> FaultWindow:
    return FaultWindow(
        kind=start.kind,
        nodes=start.nodes,
        start_ns=start.time_ns,
        stop_ns=last_ns if stop is None else stop.time_ns,
        is_stopped=stop is not None,
        happened=start.happened,
        package=start.package,
        shape=start.shape,
        fault=start.fault,
        evidence=start.evidence,
        healing="" if stop is None else stop.evidence,
        point=start.point,
    )


def nodes_struck(windows: Iterable[FaultWindow], kinds: Collection[str]) -> frozenset[str]:
    """The nodes that faults of these kinds struck; all of a fault that does not say which part of it struck whom."""
    of_kinds = ((one, kind) for one in windows for kind in one.kinds if kind in kinds)
    return frozenset(node for one, kind in of_kinds for node in one.nodes_of(kind) or one.nodes)


def kinds_of(windows: Iterable[FaultWindow]) -> tuple[str, ...]:
    """The kinds among faults, sorted; faults at one moment count as each of theirs."""
    return tuple(sorted({kind for window in windows for kind in window.kinds}))


def read_fault_log(path: Path) -> FaultLog:
    """The faults of a run, none where there is no file; a last line torn by a kill is left out.

    Raises UsageError for a file that is too long, and for a line that is no row.
    """
    try:
        return FaultLog.of(_rows(path))
    except FileNotFoundError:
        return FaultLog()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from None


def _rows(path: Path) -> Iterable[FaultRow]:
    for number, line in enumerate(lines_kept(path), 1):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            if not line.endswith(b"\n"):
                return
            data = None
        try:
            yield FaultRow.from_json(data)
        except ValueError as error:
            raise ValueError(f"line {number} {error}") from None
