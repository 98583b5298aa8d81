"""A checker counts once it has caught a planted bug, and the healthy system stays silent in the same storms.

The short form of `tests/mutants/campaign.py`, which goes through hundreds of seeds.
"""

from __future__ import annotations

import pytest

from checkers.verdict import Verdict
from harness.session.outcome import replay_line
from system_under_test.rocketmq.mutants import mutant_names
from tests.mutants.campaign import catches, healthy, judged
from tests.mutants.planted_bugs import PLANTED_BUGS, PlantedBug

SEEDS = 20


def test_storms_are_written_for_bugs_that_are_planted() -> None:
    assert {bug.mutant for bug in PLANTED_BUGS} <= set(mutant_names())


@pytest.mark.gate
@pytest.mark.parametrize("bug", PLANTED_BUGS, ids=lambda bug: f"{bug.mutant}-{bug.workload}")
def test_the_planted_bug_is_caught_and_shown_by_node_events_and_the_healthy_system_is_not_accused(
    bug: PlantedBug,
) -> None:
    caught, shown = False, not bug.shown_by_nodes
    for seed in range(bug.first_seed, bug.first_seed + SEEDS):
        well = judged(bug.scenario(seed, planted=False))
        assert well.verdict is not Verdict.INVALID, f"{replay_line(well.scenario)}\n{well.words()}"
        of_nodes = well.results["cluster"].anomalies
        assert not [name for name, summary in of_nodes.items() if not summary.legal], (seed, of_nodes)
        ill = judged(bug.scenario(seed, planted=True))
        caught = caught or catches(bug, ill)
        shown = shown or not bug.shown_by_nodes.isdisjoint(ill.results["cluster"].anomalies)
        if caught and shown:
            return
    pytest.fail(f"in {SEEDS} storms {bug.mutant} was caught: {caught}; shown by node events: {shown}")


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["log", "register", pytest.param("consumption", marks=pytest.mark.gate)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.gate) for seed in (1, 2, 3))])
def test_the_healthy_system_is_valid(workload: str, seed: int) -> None:
    outcome = judged(healthy(workload, seed))
    assert outcome.verdict is Verdict.VALID, outcome.words()
