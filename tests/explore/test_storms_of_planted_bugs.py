"""Storms that were made small of catches still show what they were kept for, and nothing without their bug."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from stormproof.search.storm import blown_and_judged
from stormproof.search.storm_file import SUFFIX, load_storm
from stormproof.session import registry

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "planted-bugs"
NOT_CAUGHT: Mapping[str, frozenset[str]] = {
    "bookkeeper": frozenset({"corrupt-is-absent"}),
    "cmq": frozenset(),
    "dledger": frozenset(),
}
"""System -> bugs for which no search has found a storm; the pages say why."""
SLOW = "digest-without-id"
"""Its storm takes a minute of a processor, and so does the healthy system."""
COSTLY = ("close-without-cas", "fake-leader-read", "fragment-wide-check", "transfer-without-lag-check")
"""Each of them takes seconds of a processor, up to half a minute, where most others take a fraction of one."""
STORMS = sorted(file for system in NOT_CAUGHT for file in (FOLDER / system).glob(f"*{SUFFIX}"))


def name_of(file: Path) -> str:
    return file.name.removesuffix(SUFFIX)


@pytest.mark.parametrize("system", NOT_CAUGHT)
def test_each_planted_bug_has_its_storm(system: str) -> None:
    kept = {name_of(file) for file in STORMS if file.parent.name == system}
    assert kept.isdisjoint(NOT_CAUGHT[system])
    assert kept | NOT_CAUGHT[system] == set(registry.system(system).mutants)


def tier_of(file: Path) -> tuple[pytest.MarkDecorator, ...]:
    if name_of(file) == SLOW:
        return (pytest.mark.thorough,)
    return (pytest.mark.gate,) if STORMS.index(file) % 4 or name_of(file) in COSTLY else ()


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=tier_of(file)) for file in STORMS],
    ids=lambda file: f"{file.parent.name}-{name_of(file)}",
)
def test_it_shows_its_bug_and_the_healthy_system_comes_through(file: Path) -> None:
    storm, _ = load_storm(file)
    assert (storm.scenario.system, storm.scenario.mutant) == (file.parent.name, name_of(file))
    outcome = blown_and_judged(storm.scenario, registry.resolve(storm.scenario))
    assert outcome.verdict is Verdict.INVALID and storm.anomaly in outcome.anomalies, outcome.words()
    healthy = replace(storm.scenario, mutant=None)
    assert blown_and_judged(healthy, registry.resolve(healthy)).verdict is not Verdict.INVALID
