"""What lies in a run directory, read for a page: missing or torn files are gaps, not failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.record.event_lines import node_events
from harness.record.fault_log import FaultWindow, read_fault_log
from harness.record.run_directory import EVENTS, RunDirectory
from harness.record.run_record import RunRecord, read_run_record
from results.verdict_file import VerdictFile, read_verdict

MOST_EVENTS = 200_000
"""The most events of one node that are looked at."""

PARTS = ("master", "slave", "leader", "follower", "candidate")
"""Events that name a part by themselves; any other part comes with an event `role`, in its field `role`."""

_EPOCHS = ("master_epoch", "epoch", "term")


@dataclass(frozen=True, kw_only=True)
class RoleSpan:
    """One node played one part for a while."""

    node: str
    role: str
    epoch: int | None
    start_s: float
    stop_s: float


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    directory: Path
    record: RunRecord | None
    """The run record; None if there is none that can be read, as for a checked history."""
    verdict: VerdictFile | None
    """The verdict; None if none was reached."""
    history: Path | None
    nodes: tuple[str, ...]
    faults: tuple[FaultWindow, ...]
    roles: tuple[RoleSpan, ...] = field(repr=False)


def read_run(directory: Path, end_s: float, history: Path | None) -> RunFiles:
    """`end_s` closes what was still open at the end."""
    paths = RunDirectory(directory)
    try:
        verdict = read_verdict(directory)
    except (FileNotFoundError, ValueError):
        verdict = None
    faults = _faults(paths.faults)
    folder = paths.nodes
    nodes = tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_dir())) if folder.is_dir() else ()
    roles = [span for node in nodes for span in role_spans(node, _events(folder / node / EVENTS), faults, end_s)]
    return RunFiles(
        directory=directory,
        record=_record(directory),
        verdict=verdict,
        history=history,
        nodes=nodes,
        faults=faults,
        roles=tuple(roles),
    )


def role_spans(
    node: str, events: Iterable[Mapping[str, Any]], faults: tuple[FaultWindow, ...], end_s: float
) -> list[RoleSpan]:
    """The parts that a node played, from its own events. A kill ends a part, because a dead process reports nothing.
    One that belongs to several groups is a leader from the first one that it leads until it leads none any more."""
    changes: list[tuple[float, str, int | None, object]] = []
    for event in events:
        role = event.get("role") if event.get("event") == "role" else event.get("event")
        if isinstance(role, str) and (event.get("event") == "role" or role in PARTS):
            epoch = next((event[name] for name in _EPOCHS if isinstance(event.get(name), int)), None)
            changes.append((float(event.get("time", 0)) / 1e9, role, epoch, event.get("group")))
        elif event.get("event") in ("stopped", "panic"):
            changes.append((float(event.get("time", 0)) / 1e9, "", None, None))
    for fault in faults:
        if fault.happened and node in fault.down:
            changes.append((fault.start_ns / 1e9, "", None, None))
    changes.sort(key=lambda change: change[0])
    return _spans(node, _of_any_group(changes), end_s)


def _of_any_group(changes: Iterable[tuple[float, str, int | None, object]]) -> Iterator[tuple[float, str, int | None]]:
    """Without those of one group that change nothing of whether the node leads any."""
    led: set[object] = set()
    for start_s, role, epoch, group in changes:
        others = led - {group}
        if role == "leader":
            led.add(group)
        elif role == "follower":
            led.discard(group)
        else:
            led.clear()
        if role not in ("leader", "follower") or not others:
            yield start_s, role, epoch


def _spans(node: str, of_any: Iterable[tuple[float, str, int | None]], end_s: float) -> list[RoleSpan]:
    changes = list(of_any)
    spans: list[RoleSpan] = []
    for position, (start_s, role, epoch) in enumerate(changes):
        stop_s = changes[position + 1][0] if position + 1 < len(changes) else max(end_s, start_s)
        last = spans[-1] if spans else None
        if last is not None and last.role == role and last.epoch == epoch and last.stop_s == start_s:
            spans[-1] = RoleSpan(node=node, role=role, epoch=epoch, start_s=last.start_s, stop_s=stop_s)
        elif role and stop_s > start_s:
            spans.append(RoleSpan(node=node, role=role, epoch=epoch, start_s=start_s, stop_s=stop_s))
    return spans


def _events(path: Path) -> tuple[Mapping[str, Any], ...]:
    try:
        return tuple(event for _, event in islice(node_events(path), MOST_EVENTS))
    except (OSError, ValueError):
        return ()


def _faults(path: Path) -> tuple[FaultWindow, ...]:
    try:
        return read_fault_log(path).windows
    except UsageError:
        return ()


def _record(directory: Path) -> RunRecord | None:
    try:
        return read_run_record(directory)
    except UsageError:
        return None
