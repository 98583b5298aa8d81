"""Planted bugs of configured masters and slaves, each caught in a storm through which the healthy system comes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry

Settings = Mapping[str, SettingValue]
STORMS: Mapping[str, tuple[Settings, tuple[str, ...], int, str]] = {
    "dual-write-alone": (
        {"deployment": "dual-write", "flush": "async"},
        ("isolate primary every 8 for 4", "power off primary every 9 for 1"),
        1,
        "lost-write",
    ),
    "follows-blindly": (
        {"deployment": "async-slaves", "flush": "async", "brokers": 2},
        ("partition", "kill", "clock", "power"),
        3,
        "panicked",
    ),
    "sends-unsynced": ({"deployment": "async-slaves"}, ("disk", "power"), 9, "dirty-read"),
}
"""Mutant -> settings, faults, seed of the storm, and what shows it."""


def judge(mutant: str, *, is_planted: bool) -> StormOutcome:
    settings, nemesis, seed, _ = STORMS[mutant]
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=nemesis,
        settings=settings,
        mutant=mutant if is_planted else None,
        rate=100,
        time_limit_s=20,
        seed=seed,
    )
    return blown_and_judged(scenario, registry.resolve(scenario))


@pytest.mark.parametrize("mutant", STORMS)
def test_the_planted_bug_is_caught(mutant: str) -> None:
    storm = judge(mutant, is_planted=True)
    assert storm.verdict is Verdict.INVALID
    assert STORMS[mutant][3] in storm.anomalies


@pytest.mark.parametrize("mutant", STORMS)
def test_the_healthy_system_comes_through_the_same_storm(mutant: str) -> None:
    storm = judge(mutant, is_planted=False)
    assert storm.verdict is Verdict.VALID, storm.words()
