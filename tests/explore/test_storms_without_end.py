"""A search outlives storms that do not end, and keeps nothing of those that did."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import HarnessError
from stormproof.search import trial
from stormproof.search.processor_time import ComputesForEver, processor_time_limit
from stormproof.search.sampling import drawn_storm
from stormproof.search.space import Space
from stormproof.search.trial import RANDOM, Task

SPACE = Space(system="rocketmq", settings={})


def task(number: int) -> Task:
    scenario = replace(drawn_storm(SPACE, 1, number), time_limit_s=2.0, liveness_s=0.0, schedule=())
    return Task(number=number, origin=RANDOM, scenario=scenario)


def compute_for_ever(*arguments: Any) -> None:
    while True:
        try:
            while True:
                pass
        except ValueError:
            pass


def test_a_storm_that_computes_for_ever_is_told_and_does_not_hold_up_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial, "blown_and_judged", compute_for_ever)
    monkeypatch.setattr(trial, "MOST_PROCESSOR_S", 0.05)
    told = trial.tried(task(0))
    assert (told["verdict"], told["anomalies"]) == ("unknown", [])
    assert "it did not come to its end in 0.05 s of processor time" in told["words"]


def test_what_ends_in_time_is_left_alone() -> None:
    with processor_time_limit(0.05):
        pass
    with pytest.raises(ComputesForEver), processor_time_limit(0.05):
        compute_for_ever()
    assert issubclass(ComputesForEver, HarnessError)
    for _ in range(2_000_000):
        pass  # longer than the limit: it is over


def worlds() -> int:
    gc.collect()
    gc.unfreeze()
    return sum(isinstance(world, SimulatedEnvironment) for world in gc.get_objects())


@pytest.mark.gate
def test_nothing_is_kept_of_storms_that_ended() -> None:
    before = worlds()
    for number in range(5):
        trial.tried(task(number))
    # The first one hangs on what is looked at no more.
    assert worlds() <= before + 1
