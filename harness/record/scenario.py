"""A frozen Scenario: all that is needed to run again, each number within the bounds that stand beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from harness.bounds import Bounds, bounds_of, fitting, quote
from harness.errors import UsageError
from harness.nearest import unknown
from harness.record.picked import picked_numbers

SettingValue = str | int | float | bool

LONGEST_TEXT = 1_000
"""Characters of a name, a sentence, or a setting's value."""
MOST_ENTRIES = 1_000
"""Kinds of faults, or settings."""
MOST_LINES = 100_000
"""How many lines a schedule may have."""
SLOWEST_RATE = 1e-5
"""Not even the longest storm sees a handful of operations at a lower rate."""
_WEEK_S = 7 * 24 * 3600

DRAWN, NEAR, CALM = "drawn", "near", "calm"
WORLDS = (DRAWN, NEAR, CALM)
"""What the simulator makes: a world drawn from the seed, one whose hosts are a few milliseconds apart at most, or a
quiet rack in which nothing unusual happens."""

SIMULATED = "simulated"
"""The environment without real time."""

NONE = "none"
"""No faults, or no planted bug, where a name of one could stand. Nothing at all does not mean it: see `Scenario`."""


def nemesis_names(text: str) -> tuple[str, ...]:
    """The names in `partition,kill`, for a Scenario's nemesis; `none` alone is no faults.

    What is empty between commas stays as an empty name, which is refused where the scenario is resolved.
    """
    names = tuple(name.strip() for name in text.split(","))
    return () if names == (NONE,) else names


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Everything that decides a run. Equal scenarios give equal traces in the simulator.

    `settings` are the `--set key=value` pairs; each key belongs to the settings dataclass of the system,
    the workload or the nemesis that declares it.

    Raises UsageError for a field of another type, or outside its bounds, however the scenario came about: from a
    command line, a suite, a stored `scenario.json`, or code.

    An empty name, as a variable that is not set leaves it, is no way to say "no faults": a gate would turn green.
    """

    system: str
    workload: str
    nemesis: tuple[str, ...] = ()
    schedule: tuple[str, ...] = ()
    """The lines of a schedule file, which says itself when which fault strikes; it stands alone, without a nemesis."""
    environment: str = SIMULATED
    inventory: str = ""
    """The file that names the machines, for an environment that takes one."""
    real_clock: bool = False
    """Whether wrong clocks are those of whole machines, where these are lent for it."""
    capture: bool = False
    """Whether nodes keep their packets, where there are packets."""
    world: str = DRAWN
    """One of WORLDS; another than a drawn one is for the simulated environment alone."""
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    mutant: str | None = None
    concurrency: Annotated[int, Bounds(1, 1_000)] = 10
    rate: Annotated[float, Bounds(0, 100_000)] = 100.0
    """Operations a second over all clients; 0 is as fast as possible."""
    operations: str = ""
    """The numbers of the storm's operations that are carried out, such as `3, 17-20`; empty: all."""
    time_limit_s: Annotated[float, Bounds(0, _WEEK_S)] = 60.0
    """Length of the storm; set-up, recovery and final reads come on top."""
    recovery_s: Annotated[float, Bounds(0, _WEEK_S)] = 20.0
    """The calm between healing and the final reads."""
    liveness_s: Annotated[float, Bounds(0, _WEEK_S)] = 0.0
    """The storm's last part: only nodes that the system can do without are down, and progress is demanded; 0: none."""
    max_outage_s: Annotated[float, Bounds(0, _WEEK_S)] = 0.0
    """The longest time that clients may be refused before they are served again for good; 0: any."""
    seed: Annotated[int, Bounds(0, 2**63 - 1)] = 0

    def __post_init__(self) -> None:
        for name in BOUNDS:
            fitting(Scenario, name, getattr(self, name), what=name)
        for name in ("system", "workload", "environment", "inventory"):
            _refuse_other_than_text(name, getattr(self, name))
        for name in ("real_clock", "capture"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} takes true or false, got {quote(getattr(self, name))}")
        if self.mutant is not None:
            _refuse_other_than_text("mutant", self.mutant)
        if not isinstance(self.nemesis, tuple):
            raise UsageError(f"nemesis takes a list of kinds of faults, got {quote(self.nemesis)}")
        if not isinstance(self.settings, Mapping):
            raise UsageError(f"settings takes a table of keys and values, got {quote(self.settings)}")
        for entries in (self.nemesis, self.settings):
            if len(entries) > MOST_ENTRIES:
                raise UsageError(f"a scenario has at most {MOST_ENTRIES} faults and settings each, got {len(entries)}")
        for kind in self.nemesis:
            _refuse_other_than_text("nemesis", kind)
        self._check_schedule()
        self._check_world()
        if not isinstance(self.operations, str):
            raise UsageError(f"operations takes text, got {quote(self.operations)}")
        if self.operations:
            picked_numbers(self.operations)
        for key, value in self.settings.items():
            _refuse_other_than_text("the name of a setting", key)
            if not isinstance(value, (str, int, float)):
                raise UsageError(f"setting {key} takes text, a number or true/false, got {quote(value)}")
            if isinstance(value, str):
                _refuse_other_than_text(f"setting {key}", value)
        if 0 < self.rate < SLOWEST_RATE:
            raise UsageError(f"rate takes 0 for no limit, or at least {SLOWEST_RATE:g} a second, got {self.rate:g}")
        if self.liveness_s > self.time_limit_s:
            raise UsageError(
                f"liveness_s is a part of the storm, so at most time_limit_s ({self.time_limit_s:g}), "
                f"got {self.liveness_s:g}"
            )

    def _check_schedule(self) -> None:
        if not isinstance(self.schedule, tuple):
            raise UsageError(f"schedule takes a list of lines, got {quote(self.schedule)}")
        if len(self.schedule) > MOST_LINES:
            raise UsageError(f"a schedule has at most {MOST_LINES} lines, got {len(self.schedule)}")
        for number, line in enumerate(self.schedule, 1):
            _refuse_other_than_text(f"schedule, line {number}:", line)
        if self.schedule and self.nemesis:
            raise UsageError("a schedule says itself which faults strike; leave it or the nemesis out")

    def _check_world(self) -> None:
        if self.world not in WORLDS:
            raise UsageError(f"world takes one of {', '.join(WORLDS)}, got {quote(self.world)}")
        if self.world != DRAWN and self.environment != SIMULATED:
            raise UsageError(f"only the simulated environment makes a world that is {self.world}; leave world out")

    def faults_in_words(self, joint: str) -> str:
        """Names of packages with this between them, or what stands in their place."""
        return joint.join(self.nemesis) or ("a schedule" if self.schedule else "no faults")

    def to_json(self) -> dict[str, Any]:
        data = dataclasses.asdict(self)
        data["nemesis"] = list(self.nemesis)
        if self.schedule:
            data["schedule"] = list(self.schedule)
        else:
            del data["schedule"]
        for name, usual in (
            ("inventory", ""),
            ("real_clock", False),
            ("capture", False),
            ("world", DRAWN),
            ("operations", ""),
        ):
            if data[name] == usual:
                del data[name]
        data["settings"] = dict(sorted(self.settings.items()))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scenario:
        """Raises UsageError for unknown, missing or wrong fields."""
        known = {f.name for f in dataclasses.fields(cls)}
        for name in sorted(set(data) - known):
            raise UsageError(unknown("field", name, sorted(known), of=" of a scenario"))
        for name in ("system", "workload"):
            if name not in data:
                raise UsageError(f"scenario lacks the field {name!r}")
        listed = {name: data[name] for name in ("nemesis", "schedule") if isinstance(data.get(name), list)}
        return cls(**{**data, **{name: tuple(entries) for name, entries in listed.items()}})


def _refuse_other_than_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{name} takes text, got {quote(value)}")
    if len(value) > LONGEST_TEXT:
        raise UsageError(f"{name} takes at most {LONGEST_TEXT} characters, got {len(value)}: {quote(value)}")
    if not value.isprintable():
        raise UsageError(f"{name} takes printable text, got {quote(value)}")


BOUNDS: Mapping[str, Bounds] = bounds_of(Scenario)
"""What the numbers of a scenario may be, by field."""
