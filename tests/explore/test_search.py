"""A search tries, learns and goes on: the same storms give the same rows, and what was kept is not tried again."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.errors import UsageError
from harness.record.scenario import Scenario
from stormproof.search.guide import LAG, ROUND, Guide
from stormproof.search.points import seconds_in
from stormproof.search.search import Search, bounded, ended, searched
from stormproof.search.space import Space
from stormproof.search.store import Store
from stormproof.search.storm import blow
from stormproof.search.trial import GUIDED, RANDOM, ROWS, Task, tried
from stormproof.session import registry

SPACE = Space(system="rocketmq", settings={})


def row_of(task: Task, *, verdict: str = "valid", features: list[int] | None = None) -> dict[str, Any]:
    """What a storm could have come to."""
    return task.to_row() | {
        "verdict": verdict,
        "anomalies": ["lost-write"] if verdict == "invalid" else [],
        "words": "",
        "regime": "{}",
        "faults": [],
        "reached": [],
        "points": [],
        "strikes": [],
        "states": 1,
        "features": [task.number % 5, task.number] if features is None else features,
        "unguided": [task.number],
        "operations": 10,
        "simulated_s": 1.0,
        "trace_hash": "",
        "processor_s": 0.1,
    }


class Tries:
    """Makes rows up, and counts."""

    def __init__(self, *, invalid: frozenset[int] = frozenset()) -> None:
        self.tasks: list[Task] = []
        self.invalid = invalid

    def __call__(self, tasks: list[Task]) -> Future[pa.Table]:
        self.tasks += tasks
        return ended([row_of(task, verdict="invalid" if task.number in self.invalid else "valid") for task in tasks])


class TriesLate(Tries):
    """Its rounds end when they are waited for, as late as can be."""

    def __init__(self, *, invalid: frozenset[int] = frozenset()) -> None:
        super().__init__(invalid=invalid)
        self.course: list[str] = []

    def __call__(self, tasks: list[Task]) -> Future[pa.Table]:
        place = tasks[0].number // ROUND
        self.course.append(f"{place} begins")
        begun = super().__call__(tasks)

        class Late(Future[pa.Table]):
            def result(late, timeout: float | None = None) -> pa.Table:
                self.course.append(f"{place} ends")
                return begun.result()

        return Late()


def search(count: int, *, is_guided: bool = True) -> Search:
    return Search(space=SPACE, root=5, numbers=range(count), is_guided=is_guided)


def test_one_storm_gives_one_row_however_often_it_is_tried() -> None:
    (task,) = Guide(space=SPACE, root=3).proposed([0])
    first, second = tried(task), tried(task)
    for row in (first, second):
        assert row.pop("processor_s") > 0
    assert first == second
    assert pa.Table.from_pylist([first | {"processor_s": 0.0}], schema=ROWS).num_rows == 1
    assert first["features"] and first["operations"] > 0 and first["trace_hash"]


def test_a_guided_search_begins_at_random_and_then_changes_what_led_somewhere_new() -> None:
    tries = Tries()
    list(searched(search(4 * ROUND), None, tries))
    origins = [task.origin for task in tries.tasks]
    first_led = (1 + LAG) * ROUND
    assert set(origins[:first_led]) == {RANDOM}
    assert origins[first_led:].count(GUIDED) > ROUND
    assert RANDOM in origins[first_led:]
    assert all((task.parent is not None) == (task.origin == GUIDED) for task in tries.tasks)


def test_a_round_is_proposed_knowing_all_rounds_but_the_lag() -> None:
    tries = Tries()
    list(searched(search(6 * ROUND), None, tries))
    youngest = [-1] * 6
    for task in tries.tasks:
        if task.parent is not None:
            youngest[task.number // ROUND] = max(youngest[task.number // ROUND], task.parent // ROUND)
    assert youngest == [max(place - 1 - LAG, -1) for place in range(6)]


def test_a_round_begins_before_the_one_before_it_ends() -> None:
    tries = TriesLate()
    for _ in searched(search(4 * ROUND), None, tries):
        tries.course.append("learned")
    assert ", ".join(tries.course) == (
        "0 begins, 1 begins, 0 ends, learned, 2 begins, 1 ends, learned, 3 begins, 2 ends, learned, 3 ends, learned"
    )


def test_what_is_proposed_does_not_depend_on_when_rounds_end() -> None:
    at_once, late = Tries(), TriesLate()
    for tries in (at_once, late):
        list(searched(search(5 * ROUND), None, tries))
    assert GUIDED in {task.origin for task in at_once.tasks}
    assert at_once.tasks == late.tasks


@pytest.mark.parametrize("make", [Tries, TriesLate])
def test_a_search_for_the_first_finding_ends_with_the_rounds_under_way(make: Callable[..., Tries]) -> None:
    tries = make(invalid=frozenset({ROUND + 3, 2 * ROUND + 1}))
    learned = list(searched(search(9 * ROUND), None, tries, goes_on=bounded(None, first=True)))
    assert [task.number for task in tries.tasks] == list(range((2 + LAG) * ROUND))
    (*_, (tally, _)) = learned
    assert tally.storms == len(tries.tasks)
    assert tally.causes == {("lost-write",): [ROUND + 3, 2 * ROUND + 1]}


def test_a_random_search_is_not_led() -> None:
    tries = Tries()
    list(searched(search(3 * ROUND, is_guided=False), None, tries))
    assert {task.origin for task in tries.tasks} == {RANDOM}


def test_what_is_proposed_does_not_depend_on_the_order_in_which_a_round_came_home() -> None:
    proposals = []
    for backwards in (False, True):
        guide = Guide(space=SPACE, root=5)
        rows = [row_of(task) for task in guide.proposed(range(ROUND))]
        guide.learns(reversed(rows) if backwards else rows)
        proposals.append(guide.proposed(range(ROUND, 2 * ROUND)))
    assert proposals[0] == proposals[1]


def test_what_led_to_no_verdict_has_no_children_and_makes_nothing_old() -> None:
    guide = Guide(space=SPACE, root=5)
    rows = [row_of(task, verdict="unknown", features=[1, 2]) for task in guide.proposed(range(ROUND))]
    assert guide.learns(rows) == 0
    assert {task.origin for task in guide.proposed(range(ROUND, 2 * ROUND))} == {RANDOM}
    (task, *_) = guide.proposed([ROUND])
    assert guide.learns([row_of(task, features=[1, 2])]) == 2
    parents = {task.parent for task in guide.proposed(range(2 * ROUND, 3 * ROUND))}
    assert parents == {None, ROUND}


def short_storm(*schedule: str, concurrency: int, rate: float) -> Task:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        settings={},
        time_limit_s=8,
        recovery_s=4,
        seed=3,
        schedule=schedule,
        concurrency=concurrency,
        rate=rate,
    )
    return Task(number=0, origin=RANDOM, scenario=scenario)


def test_a_row_tells_in_which_second_of_the_storm_points_were_reached() -> None:
    row = tried(short_storm("3 for 1 kill primary [kill 0]", concurrency=2, rate=20))
    seconds = seconds_in(row["points"])
    elections = [second for second, times in enumerate(seconds["elected-master"]) if times]
    assert elections and min(elections) >= 3, "the first master was elected before the storm"
    assert "registered" not in seconds or not any(seconds["registered"][:3])
    assert all(len(times) <= 9 and times[-1] for times in seconds.values())
    assert seconds.keys() <= set(row["reached"])


@pytest.mark.parametrize(
    "fault", ["pause one of clients", "isolate one of clients", "cut link one of clients to primary"]
)
def test_a_storm_that_strikes_clients_is_tried_as_any_other(fault: str) -> None:
    strikes = f"1 for 1 {fault} [clients 0]", f"4 for 1 {fault} [clients 1]"
    row = tried(short_storm(*strikes, concurrency=4, rate=40))
    assert (row["verdict"], row["words"]) == ("valid", "")
    assert len(row["faults"]) == 1


def test_looking_at_points_leaves_the_trace_as_it_is() -> None:
    (task,) = Guide(space=SPACE, root=4).proposed([1])
    assert blow(task.scenario, registry.resolve(task.scenario)).trace_hash == tried(task)["trace_hash"]


def test_a_search_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    whole = Tries()
    list(searched(search(6 * ROUND), None, whole))
    first, second = Tries(), Tries()
    store = Store(tmp_path / "search", search(6 * ROUND).to_json())
    for _, _ in zip(range(3), searched(search(6 * ROUND), store, first), strict=False):
        pass
    assert len(first.tasks) == (3 + LAG) * ROUND, "the rounds that were learned, and those under way, which are lost"
    again = Store(tmp_path / "search", search(6 * ROUND).to_json())
    (*_, (tally, _)) = searched(search(6 * ROUND), again, second)
    assert [task.number for task in second.tasks] == list(range(3 * ROUND, 6 * ROUND))
    assert first.tasks == whole.tasks[: len(first.tasks)]
    assert second.tasks == whole.tasks[3 * ROUND :]
    assert tally.storms == 6 * ROUND


def test_a_cause_is_found_once_and_counted(tmp_path: Path) -> None:
    tries = Tries(invalid=frozenset({3, 20, 21}))
    found = [row for _, first in searched(search(2 * ROUND), None, tries) for row in first]
    assert [(row["number"], row["anomalies"]) for row in found] == [(3, ["lost-write"])]
    (*_, (tally, _)) = searched(search(2 * ROUND), None, tries)
    assert tally.causes == {("lost-write",): [3, 20, 21]}


def test_a_directory_holds_one_search(tmp_path: Path) -> None:
    Store(tmp_path / "search", search(16).to_json())
    with pytest.raises(UsageError, match=r"holds another search .guided was True, is False."):
        Store(tmp_path / "search", search(16, is_guided=False).to_json())
    (tmp_path / "search" / "search.json").write_text(json.dumps(search(16).to_json() | {"lag": LAG + 1}))
    with pytest.raises(UsageError, match=rf"holds another search .lag was {LAG + 1}, is {LAG}."):
        Store(tmp_path / "search", search(16).to_json())
    (tmp_path / "search" / "search.json").write_text("no JSON")
    with pytest.raises(UsageError, match="is no search; name another directory with --into"):
        Store(tmp_path / "search", search(16).to_json())


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "search", search(16).to_json())
    (store.rounds / "00000.parquet").write_bytes(b"torn")
    with pytest.raises(UsageError, match=r"00000\.parquet is no round of a search"):
        list(searched(search(16), store, Tries()))
