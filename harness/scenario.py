"""A frozen Scenario: all that is needed to run again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import UsageError

SettingValue = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Everything that decides a run. Equal scenarios give equal traces in the simulator.

    `settings` are the `--set key=value` pairs; each key belongs to the settings dataclass of the system,
    the workload or the nemesis that declares it.
    """

    system: str
    workload: str
    nemesis: tuple[str, ...] = ()
    environment: str = "simulated"
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    mutant: str | None = None
    concurrency: int = 10
    rate: float = 100.0
    """Operations a second over all clients; 0 is as fast as possible."""
    time_limit_s: float = 60.0
    """Length of the storm; set-up, recovery and final reads come on top."""
    recovery_s: float = 20.0
    """The calm between healing and the final reads."""
    liveness_s: float = 0.0
    """The storm's last part, in which only dispensable nodes stay broken and progress is demanded; 0: not demanded."""
    max_outage_s: float = 0.0
    """The longest time that clients may be refused before they are served again for good; 0: any."""
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        data = dataclasses.asdict(self)
        data["nemesis"] = list(self.nemesis)
        data["settings"] = dict(sorted(self.settings.items()))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scenario:
        """Raises UsageError for unknown or missing fields."""
        known = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise UsageError(f"scenario has unknown fields {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        for name in ("system", "workload"):
            if name not in data:
                raise UsageError(f"scenario lacks the field {name!r}")
        return cls(**{**data, "nemesis": tuple(data.get("nemesis", ()))})
