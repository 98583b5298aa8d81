"""A scenario outside its bounds cannot be made, however it comes about, and settings keep to what they declare."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.bounds import bounds_of
from harness.errors import UsageError
from harness.record.scenario import BOUNDS, Scenario
from nemesis.schedule import NemesisSettings
from stormproof.session.registry import resolve
from stormproof.session.suite_file import parse_suite
from workloads.log import LogSettings
from workloads.register import RegisterSettings
from workloads.systems.rocketmq.settings import RocketmqSettings

GOOD = {"system": "rocketmq", "workload": "log"}
NUMBERS = ("concurrency", "rate", "time_limit_s", "recovery_s", "liveness_s", "max_outage_s", "seed")


def test_every_number_of_a_scenario_has_bounds() -> None:
    assert tuple(BOUNDS) == NUMBERS


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_may_be_at_either_bound_and_nothing_beyond(name: str) -> None:
    bounds = BOUNDS[name]
    room = {"time_limit_s": BOUNDS["time_limit_s"].most} if name == "liveness_s" else {}
    for fit in (bounds.least, bounds.most):
        Scenario(**GOOD, **room, **{name: fit})  # type: ignore[arg-type]
    for wrong in (bounds.least - 1, bounds.most + 1, 10**400, math.nan, math.inf, -math.inf, "5", None, True, [1]):
        with pytest.raises(UsageError, match=rf"^{name} takes a (whole )?number {bounds}, got "):
            Scenario(**GOOD, **room, **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"system": 3}, "system takes text, got 3"),
        ({"workload": "w" * 1001}, "workload takes at most 1000 characters, got 1001: 'www"),
        ({"environment": "simu\nlated"}, r"environment takes printable text, got 'simu\\nlated'"),
        ({"mutant": "\ud800"}, r"mutant takes printable text, got '\\ud800'"),
        ({"nemesis": "kill"}, "nemesis takes a list of kinds of faults, got 'kill'"),
        ({"nemesis": [1]}, "nemesis takes text, got 1"),
        ({"nemesis": ["kill"] * 1001}, "at most 1000 faults and settings each, got 1001"),
        ({"settings": []}, r"settings takes a table of keys and values, got \[\]"),
        ({"settings": {"brokers": None}}, "setting brokers takes text, a number or true/false, got None"),
        ({"settings": {"keep": "k" * 1001}}, "setting keep takes at most 1000 characters"),
        ({"rate": 1e-9}, "rate takes 0 for no limit, or at least 1e-05 a second, got 1e-09"),
        ({"liveness_s": 61}, r"liveness_s is a part of the storm, so at most time_limit_s \(60\), got 61"),
        ({"time_limit_s": 1e9}, "time_limit_s takes a number from 0 to 604800, got 1000000000.0"),
    ],
)
def test_a_stored_scenario_that_was_edited_by_hand_is_refused_as_a_command_line_is(
    field: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        Scenario.from_json({**GOOD, **field})


def test_a_suite_is_refused_with_its_file_and_matrix() -> None:
    with pytest.raises(UsageError, match=r"^s\.toml: matrix 1: concurrency takes a whole number from 1 to 1000, got"):
        parse_suite('[defaults]\nsystem = "rocketmq"\nworkload = "log"\nconcurrency = 1000000', "s.toml")


SETTINGS = [
    (type_, name)
    for type_ in (RocketmqSettings, LogSettings, RegisterSettings, NemesisSettings)
    for name in type_.__dataclass_fields__
    if name in bounds_of(type_)
]


@pytest.mark.parametrize(("type_", "name"), SETTINGS, ids=lambda part: getattr(part, "__name__", str(part)))
@pytest.mark.parametrize("wrong", [-1, 10**30, math.nan, math.inf, "", "x", True], ids=repr)
def test_every_number_among_settings_has_bounds_that_hold(type_: type, name: str, wrong: Any) -> None:
    workload = "register" if type_ is RegisterSettings else "log"
    scenario = Scenario(system="rocketmq", workload=workload, nemesis=("kill",), settings={name: wrong})
    with pytest.raises(UsageError, match=f"^setting {name} takes a (whole )?number {bounds_of(type_)[name]}, got "):
        resolve(scenario)


def test_no_number_among_settings_is_without_bounds() -> None:
    for type_ in (RocketmqSettings, LogSettings, RegisterSettings, NemesisSettings):
        numbers = {name for name, field in type_.__dataclass_fields__.items() if type(field.default) in (int, float)}
        assert numbers == set(bounds_of(type_))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shortest_fault_s": 16}, r"shortest_fault_s must be at most longest_fault_s \(15\), got 16"),
        ({"brokers": 3, "learners": 3}, r"learners must be less than brokers \(3\), got 3"),
        ({"in_sync_replicas": 4}, "in_sync_replicas=4 can never be met by 3 brokers"),
        ({"send_share": 1}, "send_share must lie between 0 and 1, got 1"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve(Scenario(system="rocketmq", workload="log", nemesis=("kill",), settings=settings))
