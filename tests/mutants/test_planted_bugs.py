"""A checker counts once it has caught a planted bug, and the healthy system stays silent in the same storms.

The short form of `tests/mutants/campaign.py`, which goes through hundreds of seeds.
"""

from __future__ import annotations

import pytest

from checkers.verdict import Verdict
from system_under_test.mutants import mutant_names
from tests.mutants.campaign import healthy, hunt, judged
from tests.mutants.planted_bugs import PLANTED_BUGS, PlantedBug

SEEDS = 20


def test_every_planted_bug_has_a_storm() -> None:
    assert {bug.mutant for bug in PLANTED_BUGS} == set(mutant_names())


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED_BUGS, ids=lambda bug: bug.mutant)
def test_the_planted_bug_is_caught_and_the_healthy_system_is_not_accused(bug: PlantedBug) -> None:
    found = hunt(bug, range(SEEDS))
    assert found.seed is not None, f"{bug.mutant} was not caught in {SEEDS} seeds"
    assert not found.healthy_not_valid


@pytest.mark.slow
@pytest.mark.parametrize("bug", [bug for bug in PLANTED_BUGS if bug.told_by_nodes], ids=lambda bug: bug.mutant)
def test_the_nodes_own_events_tell_of_the_planted_bug_and_accuse_nobody_else(bug: PlantedBug) -> None:
    told: set[str] = set()
    for seed in range(SEEDS):
        well = judged(bug.scenario(seed, planted=False)).results["cluster"]
        assert not [name for name, summary in well.anomalies.items() if not summary.legal], (seed, well)
        told = set(judged(bug.scenario(seed, planted=True)).results["cluster"].anomalies)
        if told & bug.told_by_nodes:
            break
    assert told & bug.told_by_nodes, f"nothing was told in {SEEDS} seeds"


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["log", "register"])
@pytest.mark.parametrize("seed", range(4))
def test_the_healthy_system_is_valid(workload: str, seed: int) -> None:
    outcome = judged(healthy(workload, seed))
    assert outcome.verdict is Verdict.VALID, outcome.words()
