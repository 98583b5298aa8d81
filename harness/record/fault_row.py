"""One line of the fault log, which the nemesis writes and which checkers and the report read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FINAL_HEALING = "final healing"
"""The shape of a stop that no schedule asked for: after the storm, of a fault that was active still."""

_REQUIRED: Mapping[str, type] = {
    "time": int,
    "package": str,
    "number": int,
    "phase": str,
    "kind": str,
    "happened": bool,
    "targets": list,
}
_OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "shape": (str,),
    "fault": (dict, type(None)),
    "evidence": (str,),
    "point": (str,),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultRow:
    """One line of the fault log: a fault was started or stopped, and what was read back of it."""

    time_ns: int
    """The time of a start is from when it may be felt; that of a stop, when it is over."""
    package: str
    number: int
    """The number of the fault within its package."""
    starts: bool
    """Its start, otherwise its stop."""
    kind: str
    """A kind of `Environment.faults`; several at one moment with `+` between."""
    shape: str = ""
    """What was done to whom, as in the schedule: `kill one of all`."""
    nodes: tuple[str, ...] = ()
    """Every node that it touched; of a cut, those on both sides."""
    fault: Mapping[str, Any] | None = None
    """The concrete fault as JSON; None where no node fitted the target."""
    happened: bool
    evidence: str = ""
    point: str = ""
    """The point that a node reached when it struck, or which it waited for in vain; empty for a fault that strikes at a
    time."""

    @property
    def key(self) -> tuple[str, int]:
        return self.package, self.number

    @property
    def name(self) -> str:
        return self.shape or " ".join((self.kind, *self.nodes))

    def to_json(self) -> dict[str, Any]:
        phase = "start" if self.starts else "stop"
        return {
            "time": self.time_ns,
            "type": "info",
            "f": f"{phase}-{self.package}",
            "kind": self.kind,
            "phase": phase,
            "package": self.package,
            "number": self.number,
            "shape": self.shape,
            "targets": list(self.nodes),
            "fault": self.fault,
            "happened": self.happened,
            "evidence": self.evidence,
            **({"point": self.point} if self.point else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> FaultRow:
        """Raises ValueError for what is no row."""
        if (
            not isinstance(data, dict)
            or any(type(data.get(name)) is not kind for name, kind in _REQUIRED.items())
            or any(name in data and not isinstance(data[name], kinds) for name, kinds in _OPTIONAL.items())
        ):
            raise ValueError("is no record of a fault")
        if not all(isinstance(node, str) for node in data["targets"]):
            raise ValueError("names targets that are no nodes")
        return cls(
            time_ns=data["time"],
            package=data["package"],
            number=data["number"],
            starts=data["phase"] == "start",
            kind=data["kind"],
            shape=data.get("shape", ""),
            nodes=tuple(data["targets"]),
            fault=data.get("fault"),
            happened=data["happened"],
            evidence=data.get("evidence", ""),
            point=data.get("point", ""),
        )
