"""Which operations a scenario picks: text and numbers, and the storm in which only these are carried out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.generator import indexed, invoke, picked, simulate, stagger, time_limit
from harness.generator.core import GeneratorLike
from harness.record.picked import MOST_NUMBER, picked_numbers, picked_text
from harness.record.scenario import Scenario
from harness.seed import Seed


@given(st.sets(st.integers(0, 40), min_size=1, max_size=12))
def test_numbers_are_read_back_from_their_text(numbers: set[int]) -> None:
    assert picked_numbers(picked_text(numbers)) == numbers


def test_neighbours_are_written_as_a_range() -> None:
    assert picked_text([4, 9, 5, 6, 1]) == "1, 4-6, 9"


@pytest.mark.parametrize("text", ["", "x", "3-", "-3", "5-3", "1,,2", f"{MOST_NUMBER + 1}", "1 2", "٣"])
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match="operations takes numbers and ranges of them up to 10000000, such as '3, 17-20'"
    ):
        picked_numbers(text)


def invoked(generator: GeneratorLike) -> list[tuple[int, int]]:
    """(time, value) of the invocations by two clients that are answered after 10 ns."""
    events = simulate(generator, nemesis=False)
    return [(event.time, event.value["n"]) for event in events if event.type == "invoke" and event.value]


def test_operations_that_are_picked_come_at_their_times() -> None:
    def load() -> GeneratorLike:
        return stagger(1e-6, indexed(lambda n: invoke("write", {"n": n})), seed=Seed(3))

    all_ = invoked(time_limit(1e-4, load()))
    some = invoked(picked(frozenset({2, 3, 40}), time_limit(1e-4, load())))
    assert some == [all_[2], all_[3], all_[40]]


def test_picking_ends_with_the_last_number_or_with_the_load() -> None:
    assert invoked(picked(frozenset({1}), indexed(lambda n: invoke("write", {"n": n})))) == [(0, 1)]
    few = indexed(lambda n: invoke("write", {"n": n}) if n < 3 else None)
    assert [n for _, n in invoked(picked(frozenset({2, 7}), few))] == [2]


def test_a_scenario_takes_no_other_world_and_no_other_operations() -> None:
    for wrong, words in (
        ({"world": "wild"}, "world takes one of drawn, near, calm, got 'wild'"),
        ({"world": "calm", "environment": "docker"}, "only the simulated environment makes a world that is calm"),
        ({"operations": 3}, "operations takes text, got 3"),
        ({"operations": "few"}, "operations takes numbers and ranges"),
    ):
        with pytest.raises(UsageError, match=words):
            Scenario(system="rocketmq", workload="log", **wrong)  # type: ignore[arg-type]
