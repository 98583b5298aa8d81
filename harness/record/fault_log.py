"""What struck in a run, read back from the rows of its `nemesis.jsonl`, which is refused where it is none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.reading import lines_kept

_FIELDS: Mapping[str, type] = {
    "time": int,
    "package": str,
    "number": int,
    "phase": str,
    "kind": str,
    "happened": bool,
    "targets": list,
}
"""What every row has; others are for people."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows in their order, none where there is no file; a last line torn by a kill is left out.

    Raises UsageError for a file that is too long, and for a line that is no row.
    """
    rows = []
    try:
        for number, line in enumerate(lines_kept(path), 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                if not line.endswith(b"\n"):
                    break
                row = None
            if not isinstance(row, dict) or any(type(row.get(name)) is not kind for name, kind in _FIELDS.items()):
                raise ValueError(f"line {number} is no record of a fault")
            if not all(isinstance(target, str) for target in row["targets"]):
                raise ValueError(f"line {number} names targets that are no nodes")
            rows.append(row)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from None
    return rows


@dataclass(frozen=True, slots=True)
class Window:
    """One fault that had an effect, from its start to its stop (the end of the record where it never stopped)."""

    kind: str
    nodes: tuple[str, ...]
    start_ns: int
    stop_ns: int
    shape: str = ""
    """What was done to whom, in the nemesis' words: `isolate primary`."""

    def to_json(self) -> dict[str, Any]:
        """What checkers are told of it."""
        words = self.shape or " ".join((self.kind, *self.nodes))
        return {"name": words, "start_ns": self.start_ns, "stop_ns": self.stop_ns}


@dataclass(frozen=True, kw_only=True)
class Storm:
    """What struck in a run, as far as it decides what may legally be lost. Only faults with an effect count."""

    kinds: tuple[str, ...] = ()
    power_several: bool = False
    """One power loss took several nodes at once."""
    power_overlapped: bool = False
    """A power loss and another fault (clocks aside) came together, or so soon after each other that replicas
    may not have caught up between them."""


def windows(rows: Iterable[Mapping[str, Any]]) -> tuple[Window, ...]:
    """Pair starts with stops by package and number; faults without effect are left out."""
    open_: dict[tuple[str, int], Mapping[str, Any]] = {}
    closed: list[Window] = []
    last_ns = 0
    for row in rows:
        last_ns = max(last_ns, row["time"])
        key = (row["package"], row["number"])
        if row["phase"] == "start":
            if row["happened"]:
                open_[key] = row
        elif key in open_:
            start = open_.pop(key)
            closed.append(_window(start, row["time"]))
    closed += [_window(row, last_ns) for row in open_.values()]
    return tuple(sorted(closed, key=lambda window: (window.start_ns, window.kind, window.nodes)))


def _window(start: Mapping[str, Any], stop_ns: int) -> Window:
    return Window(start["kind"], tuple(start["targets"]), start["time"], stop_ns, start.get("shape", ""))


Harm = tuple[str, ...]
"""What a fault leaves as long as nothing undoes it: a link that is cut, a process that is down or paused, a clock."""


@dataclass
class _Standing:
    """A fault that had an effect, and what of it was not undone yet."""

    words: str
    harms: set[Harm]
    is_stopped: bool = False
    ending: str = "it was never stopped"


def unhealed(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """In words, the faults that had an effect which nothing undid: neither their own stop nor another fault's.

    A stop without an effect is no harm where another one did its work before (a restart started the node that was
    killed), and where another fault still held what it would have undone, if that one's stop then undoes it.
    """
    standing: dict[tuple[str, int], _Standing] = {}
    for row in rows:
        key, fault = (row["package"], row["number"]), row.get("fault") or {}
        is_start = row["phase"] == "start"
        if row["happened"]:
            undone = _ended_by(fault) if is_start else _harms(fault, key)
            for other, one in standing.items():
                if other != key:
                    # Links that an active fault holds are left alone by a stop of others.
                    one.harms -= {harm for harm in undone if one.is_stopped or harm[0] != "link"}
        if is_start and row["happened"]:
            words = row.get("shape") or " ".join((row["kind"], *row["targets"]))
            standing[key] = _Standing(words, _harms(fault, key))
        elif not is_start and key in standing:
            one = standing[key]
            one.is_stopped, one.ending = True, f"its stop had no effect: {row.get('evidence', '')}"
            if row["happened"]:
                one.harms.clear()
    return tuple(f"{one.words} ({one.ending})" for one in standing.values() if one.harms)


def _harms(fault: Mapping[str, Any], key: tuple[str, int]) -> set[Harm]:
    """What is to be undone; of a fault that nobody here knows, it as a whole."""
    kind, nodes = fault.get("kind"), fault.get("nodes", ())
    if "faults" in fault:
        return {harm for part in fault["faults"] for harm in _harms(part, key)}
    if fault.get("restart"):
        return set()
    if kind == "partition":
        return {("link", *link) for link in fault.get("links", ())}
    if kind in ("kill", "power"):
        return {("process", node) for node in nodes}
    if kind == "pause":
        return {("pause", node) for node in nodes}
    if kind == "clock":
        return {("clock", skew["node"]) for skew in fault.get("skews", ())}
    return {("fault", key[0], str(key[1]))}


def _ended_by(fault: Mapping[str, Any]) -> set[Harm]:
    """What the start of a fault undoes: a process that is killed is paused no more, one that is restarted runs."""
    if "faults" in fault:
        return {harm for part in fault["faults"] for harm in _ended_by(part)}
    if fault.get("kind") not in ("kill", "power"):
        return set()
    nodes = fault.get("nodes", ())
    restarted = {("process", node) for node in nodes} if fault.get("restart") else set()
    return {("pause", node) for node in nodes} | restarted


def kinds(faults: Iterable[Window]) -> tuple[str, ...]:
    """The kinds that had an effect, sorted; faults at one moment count as each of theirs."""
    return tuple(sorted({kind for window in faults for kind in window.kind.split("+")}))


def storm(faults: Iterable[Window], *, aftermath_s: float) -> Storm:
    """The storm for the judgement of legal losses.

    After a power loss a replica is behind until it has caught up, so another fault (clocks aside) that
    comes within `aftermath_s` before or after counts as overlapping.
    """
    faults = tuple(faults)
    aftermath_ns = round(aftermath_s * 1e9)
    power = [window for window in faults if "power" in window.kind.split("+")]
    overlapped = any(
        other is not window
        and other.kind != "clock"
        and other.start_ns <= window.stop_ns + aftermath_ns
        and window.start_ns <= other.stop_ns + aftermath_ns
        for window in power
        for other in faults
    )
    return Storm(
        kinds=kinds(faults),
        power_several=any(len(window.nodes) > 1 for window in power),
        power_overlapped=overlapped,
    )
