"""A checker counts once it has caught a planted bug, and the healthy system stays silent in the same storms.

The short form of `tests/rocketmq/mutants/campaign.py`, which goes through hundreds of seeds.
"""

from __future__ import annotations

from typing import Any

import pytest

from checkers.api.verdict import Verdict
from checkers.replication.checker import ReplicationChecker
from harness.record.scenario import Scenario
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry
from stormproof.session.outcome import replay_line
from tests.rocketmq.mutants.campaign import healthy, run_storm
from tests.rocketmq.mutants.planted_bugs import PLANTED_BUGS, WHOLE_STORM_S, PlantedBug
from tests.rocketmq.mutants.planted_parts import MUTANTS
from workloads.systems.rocketmq.meanings import MEANINGS

SEEDS = 20
OF_NODES = (ReplicationChecker.name, "invariants")
"""What judges nodes by what they say and do themselves, whatever clients noticed."""


def shown_by_nodes(outcome: StormOutcome) -> set[str]:
    found = (outcome.results[checker].anomalies for checker in OF_NODES)
    return {name for anomalies in found for name, summary in anomalies.items() if not summary.legal}


def test_storms_are_written_for_bugs_that_are_planted() -> None:
    assert {bug.mutant for bug in PLANTED_BUGS} <= set(MUTANTS)


def test_what_nodes_show_of_a_bug_is_what_their_judges_can_find() -> None:
    can_be_found = {*ReplicationChecker.meanings, *MEANINGS}
    assert not [bug for bug in PLANTED_BUGS if not bug.shown_by_nodes <= can_be_found]


def storms(bug: PlantedBug) -> list[tuple[int, float]]:
    """Seeds and seconds of those in which it is looked for, in that order."""
    whole = ((seed, WHOLE_STORM_S) for seed in range(bug.first_seed, bug.first_seed + SEEDS))
    return list(dict.fromkeys(((bug.first_seed, bug.first_storm_s), *whole)))


FIRST_IN_STORM: dict[str, str] = {}
"""The line that replays a storm of the healthy system -> the first bug that is looked for in it."""


def parameter(bug: PlantedBug) -> Any:
    """Bugs of one storm come to one worker, which lets the healthy system through it once."""
    name = f"{bug.mutant}-{bug.workload}"
    seed, storm_s = storms(bug)[0]
    line = replay_line(bug.scenario(seed, planted=False, storm_s=storm_s))
    storm = FIRST_IN_STORM.setdefault(line, name)
    return pytest.param(bug, id=name, marks=pytest.mark.xdist_group(f"storm of {storm}"))


def blown(scenario: Scenario) -> StormOutcome:
    """In memory: what a run leaves in files decides nothing here."""
    return blown_and_judged(scenario, registry.resolve(scenario))


ACCUSATIONS: dict[str, str] = {}
"""The line that replays a storm -> what the healthy system is accused of in it."""


def accusation_of_the_healthy(scenario: Scenario) -> str:
    line = replay_line(scenario)
    if line not in ACCUSATIONS:
        storm = blown(scenario)
        accused = storm.verdict is Verdict.INVALID or shown_by_nodes(storm)
        ACCUSATIONS[line] = f"{line}\n{storm.words()}" if accused else ""
    return ACCUSATIONS[line]


@pytest.mark.gate
@pytest.mark.parametrize("bug", [parameter(bug) for bug in PLANTED_BUGS])
def test_the_planted_bug_is_caught_and_shown_by_its_nodes_and_the_healthy_system_is_not_accused(
    bug: PlantedBug,
) -> None:
    caught, shown = False, not bug.shown_by_nodes
    for seed, storm_s in storms(bug):
        accusation = accusation_of_the_healthy(bug.scenario(seed, planted=False, storm_s=storm_s))
        assert not accusation, accusation
        ill = blown(bug.scenario(seed, planted=True, storm_s=storm_s))
        caught = caught or (ill.verdict is Verdict.INVALID and not bug.anomalies.isdisjoint(ill.anomalies))
        shown = shown or not bug.shown_by_nodes.isdisjoint(shown_by_nodes(ill))
        if caught and shown:
            return
    pytest.fail(f"in {len(storms(bug))} storms {bug.mutant} was caught: {caught}; shown by its nodes: {shown}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload", ["log", *(pytest.param(name, marks=pytest.mark.gate) for name in ("register", "consumption"))]
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.gate)])
def test_the_healthy_system_is_valid(workload: str, seed: int) -> None:
    outcome = run_storm(healthy(workload, seed))
    assert outcome.verdict is Verdict.VALID, outcome.words()
