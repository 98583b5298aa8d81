"""Storms that show an anomaly are made smaller as long as they show it; imagined worlds say which of them do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from harness.operation import Operation
from harness.progress import unwatched
from harness.record.facts import RunFacts
from harness.record.fault_log import FaultLog
from harness.record.history import table_of
from harness.record.picked import picked_numbers
from harness.record.scenario import Scenario
from nemesis.impair import ImpairLinksOf
from stormproof.search import shrink
from stormproof.search.delta_debugging import fewest, least
from stormproof.search.mutate import entries_in
from stormproof.search.shrink import Shrunk, Trials, scheduled, shrunk, smaller_amounts
from stormproof.search.storm import Blown, StormOutcome, blown_and_judged
from stormproof.session import registry
from stormproof.session.registry import resolve
from workloads.log import WORKLOAD as LOG

Shows = Callable[[Scenario], bool]
SECOND = 1_000_000_000


@given(st.integers(1, 60), st.data())
def test_what_is_left_does_it_and_nothing_of_it_can_be_left_out(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.lists(st.sets(st.integers(0, count - 1)), max_size=3))
    items = tuple(range(count))

    def does(some: tuple[int, ...]) -> bool:
        return not needed or any(one <= set(some) for one in needed)

    for smallest in (1, 3):
        left = fewest(items, does, smallest)
        assert does(left) and list(left) == sorted(left)
        ends = range(len(left), 0, -smallest)
        assert not any(does(left[: max(0, end - smallest)] + left[end:]) for end in ends if end > smallest)


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_least_number_is_found_by_halving(low: int, more: int) -> None:
    high = low + more
    for border in (low + 1, (low + high + 1) // 2, high):
        asked: list[int] = []

        def does(number: int, border: int = border, asked: list[int] = asked) -> bool:
            asked.append(number)
            return number >= border

        assert least(low, high, does) == border
        assert len(asked) <= 9


STORM = Scenario(
    system="rocketmq",
    workload="log",
    schedule=(
        "2.123456 for 1.5 kill b1 [kill 0]",
        "5.25 for 20.333 isolate c1 and pause b2 [partition 0]",
        "11.5 for 3 power off one of brokers [power 1]",
        "17.3 for 0.0421 kill c2 [kill 1]",
        "30 for 8 restart controllers [restart 0]",
    ),
    settings={"brokers": 5, "flush": "async", "topic_queues": 4},
    concurrency=20,
    rate=3.0,
    time_limit_s=60.0,
    liveness_s=20.0,
    seed=3,
)


@pytest.fixture
def imagined(monkeypatch: pytest.MonkeyPatch) -> Callable[[Shows], list[Scenario]]:
    """A world in which storms show `lost` where it is said; returns those that were carried out."""

    def world(shows: Shows) -> list[Scenario]:
        tried: list[Scenario] = []

        def judge(scenario: Scenario, parts: object) -> StormOutcome:
            tried.append(scenario)
            return judged_as(scenario, shows(scenario))

        monkeypatch.setattr(shrink, "blown_and_judged", judge)
        return tried

    return world


def judged_as(scenario: Scenario, is_lost: bool) -> StormOutcome:
    count = round(scenario.time_limit_s * scenario.rate)
    if scenario.operations:
        count = len([number for number in picked_numbers(scenario.operations) if number < count])
    operations = [Operation(n % 5, kind, "send", None, "q", n, index=i) for n, i, kind in _events(count)]
    blown = Blown(
        scenario=scenario,
        history=table_of(operations, LOG.value_type),
        faults=FaultLog(),
        facts=RunFacts(),
        events={},
        trace_hash="",
        trace_events=0,
        regime={},
        reached={},
        simulated_s=0.0,
        processor_s=0.0,
    )
    return StormOutcome(blown=blown, verdict=Verdict.UNKNOWN, anomalies={"lost": 3} if is_lost else {"unseen": 1})


def _events(count: int) -> list[tuple[int, int, str]]:
    return [(n, 2 * n + place, kind) for n in range(count) for place, kind in enumerate(("invoke", "fail"))]


def test_everything_that_is_not_needed_is_taken_away(imagined: Callable[[Shows], list[Scenario]]) -> None:
    def shows(scenario: Scenario) -> bool:
        killed = any("kill b1" in line for line in scenario.schedule)
        picked = picked_numbers(scenario.operations) if scenario.operations else {12, 41}
        return killed and {12, 41} <= picked and scenario.time_limit_s > 14

    tried = imagined(shows)
    small = shrunk(STORM, "lost")
    assert [line.split() for line in small.scenario.schedule] == [["2", "for", "2", "kill", "b1", "[kill", "0]"]]
    assert small.scenario == replace(
        STORM,
        schedule=small.scenario.schedule,
        settings={"brokers": 2, "controllers": 1, "queues": 1},
        world="calm",
        operations="12, 41",
        concurrency=1,
        liveness_s=0.0,
        time_limit_s=15.0,
    )
    assert (small.faults, small.operations, small.storms) == (1, 2, len(tried))
    assert len(set(map(str, tried))) == len(tried), "no storm is carried out twice"


def test_where_all_operations_are_needed_few_of_another_seed_may_be_enough(
    imagined: Callable[[Shows], list[Scenario]],
) -> None:
    def shows(scenario: Scenario) -> bool:
        return scenario.time_limit_s > 14 and (not scenario.operations or scenario.seed == STORM.seed + 4)

    imagined(shows)
    small = shrunk(STORM, "lost")
    assert small.scenario.seed == STORM.seed + 4
    assert (small.faults, small.operations) == (0, 1)


def test_what_is_needed_stays_as_it_is(imagined: Callable[[Shows], list[Scenario]]) -> None:
    imagined(lambda scenario: scenario == STORM)
    small = shrunk(STORM, "lost", most_storms=60)
    assert small.scenario == STORM
    assert small == Shrunk(
        scenario=STORM, outcome=small.outcome, anomaly="lost", storms=small.storms, processor_s=small.processor_s
    )


def test_of_shapes_at_one_moment_and_of_times_as_much_is_kept_as_is_needed(
    imagined: Callable[[Shows], list[Scenario]],
) -> None:
    def shows(scenario: Scenario) -> bool:
        entries = entries_in(scenario)
        paused = [entry for entry in entries if "pause b2" in str(entry.shape)]
        return bool(paused) and paused[0].until_ns - paused[0].at_ns > 20_300_000_000

    imagined(shows)
    (line,) = shrunk(STORM, "lost").scenario.schedule
    assert line.split() == ["5", "for", "20.333", "pause", "b2", "[pause", "0]"]


def test_an_impairment_becomes_as_weak_as_will_do(imagined: Callable[[Shows], list[Scenario]]) -> None:
    schedule = ("5 for 20 slow links of b1 delay_ms=1730 jitter_ms=234.5 [slow-links 0]",)

    def shows(scenario: Scenario) -> bool:
        (shape,) = [entry.shape for entry in entries_in(scenario)] or [None]
        return isinstance(shape, ImpairLinksOf) and shape.amounts is not None and (shape.amounts[0] or 0) >= 100

    imagined(shows)
    (line,) = shrunk(replace(STORM, schedule=schedule), "lost").scenario.schedule
    words = line.split()
    assert words[3:8] == ["slow", "links", "of", "b1", "delay_ms=100"]
    assert 0 <= float(words[8].removeprefix("jitter_ms=")) < 1


def test_an_impairment_says_what_was_drawn_before_that_is_made_weaker() -> None:
    storm = Scenario(
        system="rocketmq",
        workload="log",
        schedule=("2 for 3 slow links of one of brokers [slow-links 0]",),
        time_limit_s=8.0,
        recovery_s=3.0,
        concurrency=2,
        rate=10.0,
        seed=5,
    )
    trials = Trials(anomaly="any", progress=unwatched, most_storms=2, most_seconds=None)
    judged = blown_and_judged(storm, registry.resolve(storm))
    trials._best = storm, replace(judged, anomalies={"any": 1})
    shown: list[Scenario] = []
    trials.shows = lambda candidate: bool(shown.append(candidate))  # type: ignore[method-assign]
    smaller_amounts(trials)
    ((said,),), (window,) = [entries_in(candidate) for candidate in shown], judged.blown.faults.struck
    assert isinstance(said.shape, ImpairLinksOf) and window.fault is not None
    assert said.shape.amounts == (window.fault["delay_ms"], window.fault["jitter_ms"])


def test_nothing_is_tried_beyond_the_limit_and_the_best_so_far_is_kept(
    imagined: Callable[[Shows], list[Scenario]],
) -> None:
    tried = imagined(lambda scenario: True)
    small = shrunk(STORM, "lost", most_storms=4)
    assert len(tried) == small.storms == 4
    assert small.scenario == tried[-1] != STORM


def test_a_storm_that_shows_another_anomaly_is_not_shrunk(imagined: Callable[[Shows], list[Scenario]]) -> None:
    imagined(lambda scenario: False)
    with pytest.raises(UsageError, match="the storm of seed 3 does not show lost; there is nothing to shrink"):
        shrunk(STORM, "lost")


LOSES = Scenario(
    system="rocketmq",
    workload="queue",
    nemesis=("power off primary every 4 for 1",),
    settings={"brokers": 1, "controllers": 1, "min_in_sync_replicas": 1},
    mutant="flush-lie",
    rate=20.0,
    time_limit_s=9.0,
    seed=1,
)


def test_a_storm_of_packages_is_the_same_as_a_schedule() -> None:
    written = scheduled(LOSES)
    assert not written.nemesis and len(written.schedule) == 2
    first, second = (blown_and_judged(one, resolve(one)) for one in (LOSES, written))
    assert first.anomalies == second.anomalies
    assert first.blown.trace_hash == second.blown.trace_hash


@pytest.mark.gate
def test_a_planted_bug_is_shown_by_one_fault_and_one_operation() -> None:
    small = shrunk(LOSES, "lost")
    assert small.faults == 1
    assert small.operations <= 2
    again = blown_and_judged(small.scenario, resolve(small.scenario))
    assert (again.anomalies, again.blown.trace_hash) == (small.outcome.anomalies, small.outcome.blown.trace_hash)
    assert shrunk(LOSES, "lost").scenario == small.scenario
