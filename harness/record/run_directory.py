"""Where a run leaves everything: `runs/<scenario>/<start>-<seed>/`, and `runs/latest`, which points at the newest.

A run directory is made once and never written over; files appear in it whole or not at all, but for those
that grow while the run goes on (the history's stream, `nemesis.jsonl`, the nodes' logs).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import path_name
from harness.errors import HarnessError, UsageError
from harness.lifetime import scratch

LATEST = "latest"
SCENARIO = "scenario.json"
HISTORY_STREAM = "history.arrows"
HISTORY = "history.parquet"
FAULTS = "nemesis.jsonl"
SCHEDULE = "schedule.txt"
USAGE = "usage.jsonl"
NODE_EVENTS = "node-events.parquet"
VERDICT = "verdict.json"
REPORT = "report.html"
JUNIT = "junit.xml"
EVENTS = "events.jsonl"
"""What a node reports of itself, in its folder."""
NODE_LOG = "node.log"
"""What a node printed, in its folder."""
NODE_LOGS = "logs"
"""The files in which a node's program keeps logs beside what it prints, if it has such, in the node's folder."""
ABOUT_LOGS = "logs.json"
"""What the node's wall clock, by which its logs tell the time, was at second 0 of the run; it lies beside them."""
OBSERVED = "observed.jsonl"
"""What a node that reports nothing of itself answered when it was asked, as it came, in its folder."""
PACKETS, ABOUT_PACKETS = "packets.pcap", "packets.json"
"""The newest packets of a node, and how many were missed, in its folder, where packets were captured."""
ANOMALY_PACKETS = "anomaly.pcap"
"""The packets of the minute before the first broken promise was seen, if one was; beside them."""
_SAME_SECOND = 1_000
"""Runs of one scenario and seed that may begin in the same second."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths of one run."""

    path: Path

    @classmethod
    def create(cls, base: Path, scenario: str, seed: int, *, start: datetime | None = None) -> RunDirectory:
        """A fresh directory, with `base/latest` pointing at it; `start` is now unless given.

        Raises UsageError if it cannot be made there.
        """
        if path_name.checked(scenario, "a scenario") == LATEST:
            raise UsageError(f"{LATEST!r} cannot be the name of a scenario: it names the newest run in {base}")
        name = f"{(start or datetime.now(UTC)).strftime('%Y%m%dT%H%M%S')}-{seed}"
        try:
            path = _fresh(base / scenario, name)
            (path / "nodes").mkdir()
            _point_latest(base, path)
        except OSError as error:
            raise UsageError(
                f"cannot make a run directory in {base}: {error.strerror or error} ({error.filename}); "
                "make it writable, or choose another place with --runs"
            ) from error
        return cls(path)

    @property
    def scenario(self) -> Path:
        return self.path / SCENARIO

    @property
    def history_stream(self) -> Path:
        """While the run goes on, and after it was killed."""
        return self.path / HISTORY_STREAM

    @property
    def history(self) -> Path:
        return self.path / HISTORY

    @property
    def verdict(self) -> Path:
        return self.path / VERDICT

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def junit(self) -> Path:
        return self.path / JUNIT

    @property
    def faults(self) -> Path:
        """The fault log."""
        return self.path / FAULTS

    @property
    def node_events(self) -> Path:
        """The events of all nodes as one table."""
        return self.path / NODE_EVENTS

    @property
    def usage(self) -> Path:
        """What nodes' programs held of their machines; there where that was sampled."""
        return self.path / USAGE

    @property
    def schedule(self) -> Path:
        """When which fault was to strike, as text that can be edited and run; there where any was."""
        return self.path / SCHEDULE

    @property
    def nodes(self) -> Path:
        """One folder a node, with its NODE_LOG and EVENTS."""
        return self.path / "nodes"

    def write_json(self, name: str, data: Mapping[str, Any]) -> Path:
        """Write or replace a file as a whole: a reader sees the old one or the new one. Raises HarnessError."""
        path = self.path / name
        self.write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        return path

    def write_text(self, path: Path, text: str) -> None:
        """As `write_json`, for any file of the directory."""
        partial = path.with_name(f".{path.name}.partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            raise HarnessError(f"cannot write {path}: {error.strerror or error}") from error


def require_writable_directory(directory: Path) -> None:
    """Try whether files can be made in the directory, or it can be made; leaves nothing behind.

    To be asked before the work whose result is to lie there. Raises UsageError.
    """
    try:
        there = directory.absolute()
        while not there.exists() and not there.is_symlink():
            there = there.parent
        with scratch.directory(beside=there):
            pass
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"cannot write into {directory}: {words or error}; make it writable, or choose another place with --runs"
        ) from None


def _fresh(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _SAME_SECOND):
        path = parent / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(17, "too many runs with this seed began in one second", str(parent / name))


def _point_latest(base: Path, path: Path) -> None:
    # A link cannot be changed in place; renaming a new one over it leaves no moment without one.
    fresh = base / f".{LATEST}-{path.parent.name}-{path.name}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(path.relative_to(base))
    fresh.replace(base / LATEST)
