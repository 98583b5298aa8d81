"""What a killed run left on this machine, and what a clean-up did about it, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, order=True)
class Leftover:
    """One thing that outlived its run, or may."""

    kind: str
    """`container`, `network`, `control group`, `directory`, or `logs` that were in a container."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}


@dataclass(kw_only=True)
class Cleaned:
    """What came of a clean-up."""

    removed: list[Leftover] = field(default_factory=list)
    brought_home: list[str] = field(default_factory=list)
    """Directories in which logs of nodes were saved before their containers went."""
    spared: dict[Leftover, str] = field(default_factory=dict)
    """What was not touched, and why."""
    failed: dict[Leftover, str] = field(default_factory=dict)
    """Still there, or in part, and why."""
    not_looked_at: dict[str, str] = field(default_factory=dict)
    """Environments that could not be asked, and why."""

    def add(self, other: Cleaned) -> None:
        self.removed += other.removed
        self.brought_home += other.brought_home
        self.spared |= other.spared
        self.failed |= other.failed
        self.not_looked_at |= other.not_looked_at

    def to_json(self) -> dict[str, Any]:
        return {
            "removed": [one.to_json() for one in self.removed],
            "brought_home": [{"directory": directory} for directory in self.brought_home],
            "spared": [{**one.to_json(), "reason": reason} for one, reason in self.spared.items()],
            "failed": [{**one.to_json(), "reason": reason} for one, reason in self.failed.items()],
            "not_looked_at": [{"environment": name, "reason": reason} for name, reason in self.not_looked_at.items()],
        }
