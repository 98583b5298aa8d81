"""The facts of a run: what is known of the run itself, beside its history and its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.bounds import quote
from harness.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Breach:
    """An invariant of the system that did not hold at some moment of the run."""

    name: str
    """One that the system declares."""
    nodes: tuple[str, ...]
    time_ns: int
    because: str

    @classmethod
    def from_json(cls, data: Any) -> Breach:
        """Raises UsageError."""
        try:
            name, nodes, time_ns, because = (data[key] for key in ("name", "nodes", "time_ns", "because"))
        except (TypeError, KeyError):
            raise UsageError(f"facts: a breach has name, nodes, time_ns and because, not {quote(data)}") from None
        if not (isinstance(time_ns, int) and all(isinstance(word, str) for word in (name, because, *nodes))):
            raise UsageError(f"facts: a breach cannot be {quote(data)}")
        return cls(name=name, nodes=tuple(nodes), time_ns=time_ns, because=because)


@dataclass(frozen=True, kw_only=True)
class Lack:
    """What the system had not given back by itself when it was waited for no longer."""

    name: str
    """One that the system declares (`Declaration.restores`)."""
    because: str
    """What lacks, and where."""

    @classmethod
    def from_json(cls, data: Any) -> Lack:
        """Raises UsageError."""
        try:
            name, because = data["name"], data["because"]
        except (TypeError, KeyError):
            raise UsageError(f"facts: a lack has name and because, not {quote(data)}") from None
        if not (isinstance(name, str) and isinstance(because, str)):
            raise UsageError(f"facts: a lack cannot be {quote(data)}")
        return cls(name=name, because=because)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Times are those of the run's own clock."""

    reasons: tuple[str, ...] = ()
    """Why a verdict of VALID could not be trusted."""
    panics: Mapping[str, str] = field(default_factory=dict)
    """Node -> why it ended by itself."""
    storm_from_ns: int | None = None
    """When the storm began; None where it did not."""
    healed_ns: int | None = None
    """When everything was healed after the storm; None where it was not."""
    serves_ns: int | None = None
    """When the system served again after that; None where it did not."""
    lack: Lack | None = None
    """What the system still lacked when it had served again for long; None where it lacked nothing."""
    apart: tuple[str, ...] = ()
    """Nodes whose disks were damaged for good and on whom no other node depended any more: without them the system had
    to serve again."""
    breaches: tuple[Breach, ...] = ()
    """Invariants of the system that did not hold, in the order of their times; the first few of each name."""
    final_from_ns: int | None = None
    """When the final reads began; None where they did not."""
    complete: bool = False
    """The final reads were done; a failure after them takes nothing from the record."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunFacts:
        """Raises UsageError for what cannot be the facts of a run."""
        for name, kinds in _KINDS.items():
            if name in data and not isinstance(data[name], kinds):
                raise UsageError(f"facts: {name} cannot be {quote(data[name])}")
        words = [*data.get("reasons", ()), *data.get("apart", ()), *data.get("panics", {}).values()]
        if not all(isinstance(word, str) for word in words):
            raise UsageError("facts: reasons, nodes apart and panics must be text")
        return cls(
            reasons=tuple(data.get("reasons", ())),
            panics=dict(data.get("panics", {})),
            storm_from_ns=data.get("storm_from_ns"),
            healed_ns=data.get("healed_ns"),
            serves_ns=data.get("serves_ns"),
            lack=None if data.get("lack") is None else Lack.from_json(data["lack"]),
            apart=tuple(data.get("apart", ())),
            breaches=tuple(Breach.from_json(each) for each in data.get("breaches", ())),
            final_from_ns=data.get("final_from_ns"),
            complete=data.get("complete", False),
        )


_KINDS: Mapping[str, tuple[type, ...]] = {
    "reasons": (list,),
    "panics": (dict,),
    "storm_from_ns": (int, type(None)),
    "healed_ns": (int, type(None)),
    "serves_ns": (int, type(None)),
    "apart": (list,),
    "breaches": (list,),
    "final_from_ns": (int, type(None)),
    "complete": (bool,),
}
