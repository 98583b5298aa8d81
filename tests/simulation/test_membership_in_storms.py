"""Controllers leave, lose their disks and come back in the midst of a storm: what they promise holds all the same."""

from __future__ import annotations

import itertools

import pytest

from checkers.api.verdict import Verdict
from harness.membership import SHRINK, WIPE
from harness.record.scenario import Scenario
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry


def storm(seed: int, *nemesis: str, workload: str = "register", mutant: str | None = None) -> StormOutcome:
    scenario = Scenario(
        system="rocketmq", workload=workload, nemesis=nemesis, mutant=mutant, rate=100, time_limit_s=40, seed=seed
    )
    return blown_and_judged(scenario, registry.resolve(scenario))


@pytest.mark.parametrize(
    ("seed", "workload", "nemesis"),
    [
        (1, "register", ("membership",)),
        pytest.param(2, "register", ("membership", "partition", "kill"), marks=pytest.mark.gate),
        pytest.param(3, "register", ("membership", "power", "pause"), marks=pytest.mark.gate),
        (11, "log", ("membership", "partition", "kill")),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else str(value),
)
def test_controllers_are_replaced_and_nothing_is_forgotten(seed: int, workload: str, nemesis: tuple[str, ...]) -> None:
    judged = storm(seed, *nemesis, workload=workload)
    assert judged.verdict is Verdict.VALID, judged.words()
    struck = [window for window in judged.blown.faults.struck if window.kind in (SHRINK, WIPE)]
    assert len(struck) >= 2
    assert all("votes" in window.healing for window in struck)


def test_who_comes_back_empty_takes_its_part_before_the_next_one_leaves() -> None:
    judged = storm(2, "wipe one of controllers every 4 for 1")
    assert judged.verdict is Verdict.VALID, judged.words()
    faults = judged.blown.faults.struck
    assert {node for window in faults for node in window.nodes} == {"c1", "c2", "c3"}
    assert all(one.stop_ns <= other.start_ns for one, other in itertools.pairwise(faults))


def test_an_old_leader_that_answers_by_itself_is_caught() -> None:
    judged = storm(3, "wipe active-controller every 8 for 3", mutant="local-read")
    assert judged.verdict is Verdict.INVALID
    assert "stale-answer" in judged.words()
