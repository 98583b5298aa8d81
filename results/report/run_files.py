"""What lies in a run directory, read for a page: missing or torn files are gaps, not failures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.reading import json_kept, lines_kept
from results.verdict_file import VerdictFile, read_verdict

MOST_EVENTS = 200_000
"""Lines of one node's event log that are looked at."""

WAYS_TO_STAND_STILL = ("kill", "power")
"""Faults after which a node plays no part until it says so again."""

PARTS = ("master", "slave", "leader", "follower", "candidate")
"""Events that name a part by themselves; any other part is told by an event `role` with a field `role`."""

_EPOCHS = ("master_epoch", "epoch", "term")


@dataclass(frozen=True, kw_only=True)
class FaultWindow:
    """One fault, from the moment it was applied until it was healed."""

    kind: str
    shape: str = ""
    """What was done to whom, in the nemesis' words: `isolate primary`."""
    targets: tuple[str, ...]
    """Every node that it touched; of a cut, those on both sides."""
    aimed_at: tuple[str, ...]
    """Those that it was aimed at, where they can be told: of a cut around one node, that node."""
    down: tuple[str, ...] = ()
    """The nodes whose process it ended: whatever they were, they are no longer."""
    start_s: float
    stop_s: float | None
    """None where nobody stopped it."""
    happened: bool
    evidence: str
    healing: str
    """What was read back from the world when it was stopped."""


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
    scenario: Mapping[str, Any]
    verdict: VerdictFile | None
    """None where no verdict was reached."""
    history: Path | None
    nodes: tuple[str, ...]
    faults: tuple[FaultWindow, ...]
    roles: tuple[RoleSpan, ...] = field(repr=False)


def read_run(directory: Path, end_s: float, history: Path | None) -> RunFiles:
    """`end_s` closes what was still open at the end."""
    try:
        verdict = read_verdict(directory)
    except (FileNotFoundError, ValueError):
        verdict = None
    faults = fault_windows(list(json_lines(directory / "nemesis.jsonl")))
    folder = directory / "nodes"
    nodes = tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_dir())) if folder.is_dir() else ()
    roles = [
        span for node in nodes for span in role_spans(node, json_lines(folder / node / "events.jsonl"), faults, end_s)
    ]
    return RunFiles(
        directory=directory,
        scenario=_json_object(directory / "scenario.json"),
        verdict=verdict,
        history=history,
        nodes=nodes,
        faults=faults,
        roles=tuple(roles),
    )


def fault_windows(rows: list[Mapping[str, Any]]) -> tuple[FaultWindow, ...]:
    """Pair the rows of `nemesis.jsonl`: a stop belongs to the start of the same package and number."""
    starts: dict[tuple[str, int], Mapping[str, Any]] = {}
    found: list[FaultWindow] = []
    for row in rows:
        if row.get("type") == "invoke":
            continue
        key = (str(row.get("package") or row.get("f", "").partition("-")[2]), int(row.get("number", 0)))
        if row.get("phase") == "start":
            if key in starts:
                found.append(_window(starts[key], None))
            starts[key] = row
        elif key in starts:
            found.append(_window(starts.pop(key), row))
    found += [_window(row, None) for row in starts.values()]
    return tuple(sorted(found, key=lambda window: (window.start_s, window.kind, window.targets)))


def role_spans(
    node: str, events: Iterator[Mapping[str, Any]], faults: tuple[FaultWindow, ...], end_s: float
) -> list[RoleSpan]:
    """Who a node was when, from its own events; a kill ends a part, for the dead announce nothing."""
    changes: list[tuple[float, str, int | None]] = []
    for event in events:
        role = event.get("role") if event.get("event") == "role" else event.get("event")
        if isinstance(role, str) and (event.get("event") == "role" or role in PARTS):
            epoch = next((event[name] for name in _EPOCHS if isinstance(event.get(name), int)), None)
            changes.append((float(event.get("time", 0)) / 1e9, role, epoch))
        elif event.get("event") in ("stopped", "panic"):
            changes.append((float(event.get("time", 0)) / 1e9, "", None))
    for fault in faults:
        if fault.happened and node in fault.down:
            changes.append((fault.start_s, "", None))
    changes.sort(key=lambda change: change[0])
    spans: list[RoleSpan] = []
    for position, (start_s, role, epoch) in enumerate(changes):
        stop_s = changes[position + 1][0] if position + 1 < len(changes) else max(end_s, start_s)
        last = spans[-1] if spans else None
        if last is not None and last.role == role and last.epoch == epoch and last.stop_s == start_s:
            spans[-1] = RoleSpan(node=node, role=role, epoch=epoch, start_s=last.start_s, stop_s=stop_s)
        elif role and stop_s > start_s:
            spans.append(RoleSpan(node=node, role=role, epoch=epoch, start_s=start_s, stop_s=stop_s))
    return spans


def json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a file of JSON lines; a torn or foreign line is passed over."""
    try:
        for line in islice(lines_kept(path), MOST_EVENTS):
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict):
                yield data
    except (OSError, ValueError):
        return


def _window(start: Mapping[str, Any], stop: Mapping[str, Any] | None) -> FaultWindow:
    kind, targets = str(start.get("kind", "fault")), tuple(str(target) for target in start.get("targets") or ())
    fault = start.get("fault") or {"kind": kind, "nodes": targets}
    parts = fault.get("faults") or [fault]
    return FaultWindow(
        kind=kind,
        shape=str(start.get("shape") or ""),
        targets=targets,
        aimed_at=_aimed_at(parts, targets),
        down=tuple(
            str(node) for part in parts if part.get("kind") in WAYS_TO_STAND_STILL for node in part.get("nodes", ())
        ),
        start_s=float(start.get("time", 0)) / 1e9,
        stop_s=None if stop is None else float(stop.get("time", 0)) / 1e9,
        happened=bool(start.get("happened")),
        evidence=str(start.get("evidence", "")),
        healing="" if stop is None else str(stop.get("evidence", "")),
    )


def _aimed_at(parts: list[Mapping[str, Any]], targets: tuple[str, ...]) -> tuple[str, ...]:
    """A cut touches nearly everybody; the node that is an end of every link of it was meant."""
    links = [set(link) for part in parts for link in part.get("links", ())]
    if not links:
        return targets
    meant = set.intersection(*links) if len(links) > 2 else set.union(*links)
    meant |= {str(node) for part in parts for node in part.get("nodes", ())}
    return tuple(sorted(meant))


def _json_object(path: Path) -> Mapping[str, Any]:
    return next((data for data in [_parsed(path)] if isinstance(data, dict)), {})


def _parsed(path: Path) -> Any:
    try:
        return json_kept(path)
    except (OSError, ValueError):
        return None
