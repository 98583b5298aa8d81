"""Scenarios in a few lines of code, and their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.record.scenario import Scenario, SettingValue
from nemesis.periodic import Beat
from nemesis.target import Role

if TYPE_CHECKING:
    from stormproof.session.outcome import Outcome

PRIMARY = Role("primary")
"""The node that serves writes now, in systems that call this role so."""
ACTIVE_CONTROLLER = Role("active-controller")
"""The role of RocketMQ's controller that leads the others."""
IT = Role("it")
"""The node that reached the point: `every(10, kill(IT), heal_after_s=5, trigger=when("became-master"))`."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A system or a workload by name, with the settings given to it."""

    name: str
    settings: Mapping[str, SettingValue]


def chosen(name: str, **settings: SettingValue) -> Chosen:
    """Any system or workload that an entry point names."""
    return Chosen(name, settings)


def rocketmq(**settings: SettingValue) -> Chosen:
    return Chosen("rocketmq", settings)


def log(**settings: SettingValue) -> Chosen:
    return Chosen("log", settings)


def register(**settings: SettingValue) -> Chosen:
    return Chosen("register", settings)


def storm(
    *, system: Chosen, workload: Chosen, nemesis: Sequence[str | Beat] = (), environment: str = "simulated", **rest: Any
) -> Scenario:
    """A Scenario; `rest` are its other fields. `nemesis` lists packages by name and beats from `every`.

    Raises UsageError for a nemesis that is a text: its letters would be taken for names.
    """
    if isinstance(nemesis, str):
        raise UsageError(f"nemesis takes a list of names, got {nemesis!r}; [] means no faults")
    return Scenario(
        system=system.name,
        workload=workload.name,
        nemesis=tuple(str(entry) if isinstance(entry, Beat) else entry for entry in nemesis),
        environment=environment,
        settings={**system.settings, **workload.settings},
        **rest,
    )


def run(scenario: Scenario, *, runs: Path = Path("runs"), engine: str = "inprocess") -> Outcome:
    """Run and judge one scenario. Raises UsageError for one that cannot be, HarnessError where the harness failed."""
    # Not before: it imports every checker.
    from stormproof.session.engines import CheckOptions
    from stormproof.session.run import run_scenario

    return run_scenario(scenario, runs=runs, options=CheckOptions(engine=engine))
