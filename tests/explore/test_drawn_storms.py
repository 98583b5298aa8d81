"""Storms are drawn from their seed and number alone, and can be changed without becoming what cannot be run."""

from __future__ import annotations

import pytest

from harness.explore.draw import drawn_storm
from harness.explore.mutate import CHANGES, entries_in, mutated
from harness.explore.space import Space
from harness.record.scenario import Scenario
from harness.seed import Seed
from harness.session import resolve as registry

SPACE = Space(system="rocketmq", settings={})


def storms(count: int) -> list[Scenario]:
    return [drawn_storm(SPACE, 7, number) for number in range(count)]


def test_a_storm_follows_from_the_root_seed_and_its_number() -> None:
    assert storms(5) == storms(5)
    assert drawn_storm(SPACE, 8, 0) != drawn_storm(SPACE, 7, 0)
    assert len(set(map(str, storms(5)))) == 5


def test_every_drawn_storm_can_be_run_and_strikes_within_itself() -> None:
    for scenario in storms(60):
        registry.environment_of(scenario, registry.resolve(scenario))
        storm_ns = round((scenario.time_limit_s - scenario.liveness_s) * 1e9)
        assert scenario.schedule
        assert all(0 <= entry.at_ns < entry.until_ns <= storm_ns for entry in entries_in(scenario))
        assert len(entries_in(scenario)) == len(scenario.schedule)


def test_what_is_given_is_not_drawn() -> None:
    space = Space(system="rocketmq", workload="register", mutant="local-read", settings={"brokers": 4})
    for number in range(30):
        scenario = drawn_storm(space, 1, number)
        assert (scenario.workload, scenario.mutant, scenario.settings["brokers"]) == ("register", "local-read", 4)


def test_storms_differ_in_kind_length_load_and_settings() -> None:
    drawn = storms(80)
    assert len({scenario.rate for scenario in drawn}) > 2
    assert len({scenario.workload for scenario in drawn}) > 4
    assert len({tuple(sorted(scenario.settings.items())) for scenario in drawn}) > 10
    packages = {entry.package for scenario in drawn for entry in entries_in(scenario)}
    assert {"partition", "kill", "pause", "clock", "power"} <= packages
    lengths_s = sorted((e.until_ns - e.at_ns) / 1e9 for scenario in drawn for e in entries_in(scenario))
    assert lengths_s[0] < 0.05 and lengths_s[-1] > 10


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_storm_can_be_run_and_often_differs(change: object) -> None:
    assert callable(change)
    parents = storms(12)
    differing = 0
    for number, parent in enumerate(parents):
        changed = change(parent, parents[number - 1], SPACE, Seed(number).stream())
        registry.environment_of(changed, registry.resolve(changed))
        differing += changed != parent
    assert differing >= 4


def test_changes_follow_from_their_seed() -> None:
    parent, other = storms(2)
    first, second = (mutated(parent, other, SPACE, Seed(3).stream()) for _ in range(2))
    assert first == second


def test_splicing_keeps_each_random_stream_once() -> None:
    parents = storms(20)
    for number, parent in enumerate(parents):
        child = mutated(parent, parents[number - 1], SPACE, Seed(number).stream())
        streams = [(entry.package, entry.number) for entry in entries_in(child)]
        assert len(streams) == len(set(streams))
