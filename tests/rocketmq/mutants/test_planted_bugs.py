"""A checker counts once it has caught a planted bug, and the healthy system stays silent in the same storms.

The short form of `tests/rocketmq/mutants/campaign.py`, which goes through hundreds of seeds.
"""

from __future__ import annotations

from typing import Any

import pytest

from checkers.api.verdict import Verdict
from checkers.replication.checker import ReplicationChecker
from harness.record.scenario import Scenario
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


FIRST_IN_STORM: dict[str, str] = {}
"""The line that replays a storm of the healthy system -> the first bug that is looked for in it."""


def parameter(bug: PlantedBug) -> Any:
    """Bugs of one storm come to one worker, which lets the healthy system through it once."""
    name = f"{bug.mutant}-{bug.workload}"
    storm = FIRST_IN_STORM.setdefault(replay_line(bug.scenario(bug.first_seed, planted=False)), name)
    return pytest.param(bug, id=name, marks=pytest.mark.xdist_group(f"storm of {storm}"))


ACCUSATIONS: dict[str, str] = {}
"""The line that replays a storm -> what the healthy system is accused of in it."""


def accusation_of_the_healthy(scenario: Scenario) -> str:
    line = replay_line(scenario)
    if line not in ACCUSATIONS:
        outcome = run_storm(scenario)
        accused = outcome.verdict is Verdict.INVALID or shown_by_nodes(outcome)
        ACCUSATIONS[line] = f"{line}\n{outcome.words()}" if accused else ""
    return ACCUSATIONS[line]


@pytest.mark.gate
@pytest.mark.parametrize("bug", [parameter(bug) for bug in PLANTED_BUGS])
def test_the_planted_bug_is_caught_and_shown_by_its_nodes_and_the_healthy_system_is_not_accused(
    bug: PlantedBug,
) -> None:
    caught, shown = False, not bug.shown_by_nodes
    for seed in range(bug.first_seed, bug.first_seed + SEEDS):
        accusation = accusation_of_the_healthy(bug.scenario(seed, planted=False))
        assert not accusation, accusation
        ill = run_storm(bug.scenario(seed, planted=True))
        caught = caught or catches(bug, ill)
        shown = shown or not bug.shown_by_nodes.isdisjoint(shown_by_nodes(ill))
        if caught and shown:
            return
    pytest.fail(f"in {SEEDS} storms {bug.mutant} was caught: {caught}; shown by its nodes: {shown}")


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["log", "register", pytest.param("consumption", marks=pytest.mark.gate)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.gate)])
def test_the_healthy_system_is_valid(workload: str, seed: int) -> None:
    outcome = run_storm(healthy(workload, seed))
    assert outcome.verdict is Verdict.VALID, outcome.words()
