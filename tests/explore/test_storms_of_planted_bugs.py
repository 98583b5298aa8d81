"""Storms that were made small of catches still show what they were kept for, and nothing without their bug."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from stormproof.search.storm import blown_and_judged
from stormproof.search.storm_file import SUFFIX, load_storm
from stormproof.session import registry

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "planted-bugs" / "dledger"
STORMS = sorted(FOLDER.glob(f"*{SUFFIX}"))


def test_each_planted_bug_of_dledger_has_its_storm() -> None:
    assert {file.name.removesuffix(SUFFIX) for file in STORMS} == set(registry.system("dledger").mutants)


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=pytest.mark.gate if place % 4 else []) for place, file in enumerate(STORMS)],
    ids=lambda file: file.name.removesuffix(SUFFIX),
)
def test_it_shows_its_bug_and_the_healthy_system_comes_through(file: Path) -> None:
    storm, _ = load_storm(file)
    assert storm.scenario.mutant == file.name.removesuffix(SUFFIX)
    outcome = blown_and_judged(storm.scenario, registry.resolve(storm.scenario))
    assert outcome.verdict is Verdict.INVALID and storm.anomaly in outcome.anomalies, outcome.words()
    healthy = replace(storm.scenario, mutant=None)
    assert blown_and_judged(healthy, registry.resolve(healthy)).verdict is not Verdict.INVALID
