"""Storms from a test of your own, in a few lines:

    def test_acked_messages_survive_losing_the_master():
        outcome = run(storm(
            system=rocketmq(brokers=3, controllers=3, all_ack=True),
            workload=log(queues=4),
            nemesis=[every(10, Isolate(PRIMARY), heal_after_s=5)],
            environment="simulated",
            time_limit_s=60,
            seed=1729,
        ))
        outcome.assert_valid()

When it fails it prints the anomaly, the operations that witness it, why, and one line that replays it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.record.scenario import Scenario, SettingValue
from harness.session.judge import Outcome, run_scenario
from nemesis.grammar import every
from nemesis.shape import ClockShape, Isolate, OneWay, kill, pause, power_off
from nemesis.target import ACTIVE_CONTROLLER, ALL, PRIMARY, Majority, Minority, One

__all__ = [
    "ACTIVE_CONTROLLER",
    "ALL",
    "PRIMARY",
    "Chosen",
    "ClockShape",
    "Isolate",
    "Majority",
    "Minority",
    "One",
    "OneWay",
    "Outcome",
    "chosen",
    "every",
    "kill",
    "log",
    "pause",
    "power_off",
    "register",
    "rocketmq",
    "run",
    "storm",
]


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
    *, system: Chosen, workload: Chosen, nemesis: Sequence[str] = (), environment: str = "simulated", **rest: Any
) -> Scenario:
    """A Scenario; `rest` are its other fields. `nemesis` lists packages by name and beats from `every`.

    Raises UsageError for a nemesis that is a text: its letters would be taken for names.
    """
    if isinstance(nemesis, str):
        raise UsageError(f"nemesis takes a list of names, got {nemesis!r}; [] means no faults")
    return Scenario(
        system=system.name,
        workload=workload.name,
        nemesis=tuple(nemesis),
        environment=environment,
        settings={**system.settings, **workload.settings},
        **rest,
    )


def run(scenario: Scenario, *, runs: Path = Path("runs"), engine: str = "inprocess") -> Outcome:
    """Run and judge one scenario. Raises UsageError for one that cannot be, HarnessError where the harness failed."""
    return run_scenario(scenario, runs=runs, engine=engine)
