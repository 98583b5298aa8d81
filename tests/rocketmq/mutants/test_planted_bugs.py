"""A checker counts once it has caught a planted bug, and the healthy system stays silent in the same storms.

The short form of `tests/rocketmq/mutants/campaign.py`, which goes through hundreds of seeds.
"""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from checkers.replication.checker import ReplicationChecker
from stormproof.session.outcome import Outcome, replay_line
from tests.rocketmq.mutants.campaign import catches, healthy, run_storm
from tests.rocketmq.mutants.planted_bugs import PLANTED_BUGS, PlantedBug
from tests.rocketmq.mutants.planted_parts import MUTANTS
from workloads.systems.rocketmq.meanings import MEANINGS

SEEDS = 20
OF_NODES = (ReplicationChecker.name, "invariants")
"""What judges nodes by what they say and do themselves, whatever clients noticed."""


def shown_by_nodes(outcome: Outcome) -> set[str]:
    found = (outcome.results[checker].anomalies for checker in OF_NODES)
    return {name for anomalies in found for name, summary in anomalies.items() if not summary.legal}


def test_storms_are_written_for_bugs_that_are_planted() -> None:
    assert {bug.mutant for bug in PLANTED_BUGS} <= set(MUTANTS)


def test_what_nodes_show_of_a_bug_is_what_their_judges_can_find() -> None:
    can_be_found = {*ReplicationChecker.meanings, *MEANINGS}
    assert not [bug for bug in PLANTED_BUGS if not bug.shown_by_nodes <= can_be_found]


@pytest.mark.gate
@pytest.mark.parametrize("bug", PLANTED_BUGS, ids=lambda bug: f"{bug.mutant}-{bug.workload}")
def test_the_planted_bug_is_caught_and_shown_by_its_nodes_and_the_healthy_system_is_not_accused(
    bug: PlantedBug,
) -> None:
    caught, shown = False, not bug.shown_by_nodes
    for seed in range(bug.first_seed, bug.first_seed + SEEDS):
        well = run_storm(bug.scenario(seed, planted=False))
        assert well.verdict is not Verdict.INVALID, f"{replay_line(well.scenario)}\n{well.words()}"
        assert not shown_by_nodes(well), f"{replay_line(well.scenario)}\n{well.words()}"
        ill = run_storm(bug.scenario(seed, planted=True))
        caught = caught or catches(bug, ill)
        shown = shown or not bug.shown_by_nodes.isdisjoint(shown_by_nodes(ill))
        if caught and shown:
            return
    pytest.fail(f"in {SEEDS} storms {bug.mutant} was caught: {caught}; shown by its nodes: {shown}")


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["log", "register", pytest.param("consumption", marks=pytest.mark.gate)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.gate) for seed in (1, 2, 3))])
def test_the_healthy_system_is_valid(workload: str, seed: int) -> None:
    outcome = run_storm(healthy(workload, seed))
    assert outcome.verdict is Verdict.VALID, outcome.words()
