"""Which faults that had an effect nothing undid: neither their own stop nor another fault's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.record.fault_row import FaultRow

Harm = tuple[str, ...]
"""What a fault leaves as long as nothing undoes it: a link that is cut, a process that is down or paused, a clock."""


@dataclass
class _Open:
    """A fault that had an effect, and what of it was not undone yet."""

    name: str
    harms: set[Harm]
    is_stopped: bool = False
    ending: str = "it was never stopped"


def unhealed(rows: Iterable[FaultRow]) -> tuple[str, ...]:
    """In words, the faults that had an effect which nothing undid.

    A stop without an effect is no harm where another one did its work before (a restart started the node that was
    killed), and where another fault still held what it would have undone, if that one's stop then undoes it.
    """
    open_: dict[tuple[str, int], _Open] = {}
    for row in rows:
        key, fault = row.key, row.fault or {}
        if row.happened:
            undone = _ended_by(fault) if row.starts else _harms(fault, key)
            for other, one in open_.items():
                if other != key:
                    # What an active fault holds of links and clocks is left alone by a stop of others.
                    one.harms -= {harm for harm in undone if one.is_stopped or harm[0] not in ("link", "clock")}
        if row.starts and row.happened:
            open_[key] = _Open(row.name, _harms(fault, key))
        elif not row.starts and key in open_:
            one = open_[key]
            one.is_stopped, one.ending = True, f"its stop had no effect: {row.evidence}"
            if row.happened:
                one.harms.clear()
    return tuple(f"{one.name} ({one.ending})" for one in open_.values() if one.harms)


def _harms(fault: Mapping[str, Any], key: tuple[str, int]) -> set[Harm]:
    """What is to be undone; of a kind of fault that is unknown here, it as a whole."""
    kind, nodes = fault.get("kind"), fault.get("nodes", ())
    if "faults" in fault:
        return {harm for part in fault["faults"] for harm in _harms(part, key)}
    if fault.get("restart") or fault.get("once"):
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
