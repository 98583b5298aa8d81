"""A campaign of searches keeps what it came to, goes on where it was ended, and tells it on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.record.scenario import Scenario
from stormproof.search.compare import Chase, chased_row
from stormproof.search.guide import LAG, ROUND
from stormproof.search.search import Search
from stormproof.search.space import Space
from stormproof.search.storm_file import load_storm
from stormproof.search.trial import scenario_text
from stormproof.session import registry
from tests.rocketmq.mutants.planted_parts import MUTANTS
from tests.rocketmq.mutants.search_settings import OF_OTHERS, SETTINGS, WORKLOADS, space_for
from tests.rocketmq.mutants.searches import Kept, left, main, name_of, search_all, searches_for, shrink_all, smallest
from tests.rocketmq.mutants.searches_page import WHY_NOT, Small, page

HARD, EASY, MISSED = "shrink-first", "flush-lie", "local-read"
SHALLOW = "fractured-read"
"""Nearly every storm shows it, whatever it is made of."""
PROMISES = {EASY: "what was flushed stays", HARD: "whoever is elected has acked", MISSED: "reads are new"}
KILL = "1 for 2 kill b1 [kill 0]"
LEARNED = ROUND * (LAG + 1) + 1
"""A guided search that catches its bug by this storm has learned something."""


def storm(mutant: str, *lines: str) -> Scenario:
    schedule = lines or (KILL,)
    return Scenario(system="rocketmq", workload="log", mutant=mutant, schedule=schedule, time_limit_s=10.0)


def chase(mutant: str, storms: int, *lines: str, guided: bool = True, root: int = 0, caught: bool = True) -> Chase:
    return Chase(
        mutant=mutant,
        root=root,
        is_guided=guided,
        is_caught=caught,
        storms=storms,
        processor_s=2.0 * storms,
        states=tuple((2 if guided else 1) * tried for tried in (*range(16, storms, 16), storms)),
        number=storms - 1 if caught else None,
        anomalies=("lost-write",) if caught else (),
        scenario=storm(mutant, *lines) if caught else None,
    )


def small_row(of: Chase, *, operations: int, of_the_bug: bool = True) -> dict[str, Any]:
    return {
        "number": of.number,
        "anomaly": "lost-write",
        "scenario": scenario_text(of.scenario or storm(str(of.mutant))),
        "trace": "0" * 32,
        "words": "lost-write: 1 found",
        "operations": operations,
        "storms": 9,
        "processor_s": 1.0,
        "mutant": of.mutant,
        "root": of.root,
        "is_guided": of.is_guided,
        "is_of_the_bug": of_the_bug,
    }


class MakesUp:
    """Results of searches and of shrinking, in any order; ends as an interruption does."""

    def __init__(self, ends_after: int | None = None, storms: int = LEARNED) -> None:
        self.ends_after = ends_after
        self.storms = storms
        self.tasks: list[Any] = []

    def __call__(self, make: Callable[[Any], dict[str, Any]], tasks: Sequence[Any]) -> Iterator[dict[str, Any]]:
        for one in reversed(tasks):
            if len(self.tasks) == self.ends_after:
                raise KeyboardInterrupt
            self.tasks.append(one)
            if isinstance(one, Search):
                mutant = str(one.space.mutant)
                yield chase(mutant, self.storms, guided=one.is_guided, root=one.root, caught=mutant != MISSED).to_json()
            else:
                yield small_row(one, operations=30 if one.root == 0 else 2)


def searches(roots: int = 2) -> list[Search]:
    return searches_for([Space(system="rocketmq", mutant=name, settings={}) for name in (EASY, MISSED)], roots, 40)


def test_a_campaign_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    said: list[str] = []
    first, second = MakesUp(ends_after=3), MakesUp()
    with pytest.raises(KeyboardInterrupt):
        search_all(searches(), 6.0, Kept(tmp_path), first, said.append)
    search_all(searches(), 6.0, Kept(tmp_path), second, said.append)
    assert len(first.tasks) == 3
    assert sorted((*first.tasks, *second.tasks), key=repr) == sorted(searches(), key=repr)
    assert "8 searches, 3 of them made before" in said
    third = MakesUp()
    search_all(searches(), 6.0, Kept(tmp_path), third, said.append)
    assert third.tasks == []


def test_a_random_search_that_would_try_the_same_storms_is_not_made(tmp_path: Path) -> None:
    made = MakesUp(storms=LEARNED - 1)
    kept = Kept(tmp_path)
    search_all(searches(), 6.0, kept, made, lambda line: None)
    assert [one for one in made.tasks if one.space.mutant == EASY and not one.is_guided] == []
    of_easy = [one for one in kept.chases() if one.mutant == EASY]
    assert len(of_easy) == 4
    assert {(one.storms, one.is_caught) for one in of_easy} == {(LEARNED - 1, True)}
    assert len([one for one in made.tasks if one.space.mutant == MISSED and not one.is_guided]) == 2


def test_a_search_that_caught_nothing_is_made_again_once_it_may_cost_more() -> None:
    tried = [chase(name, 40, root=root, guided=guided, caught=name == EASY) for name, root, guided in (
        (EASY, 0, True), (EASY, 0, False), (MISSED, 0, True), (MISSED, 0, False)
    )]  # fmt: skip
    assert left(searches(1), tried, 500.0) == []  # as many storms as they have
    more = searches_for([Space(system="rocketmq", mutant=name, settings={}) for name in (EASY, MISSED)], 1, None)
    assert left(more, tried, 80.0) == []  # and as many seconds
    assert [search.space.mutant for search in left(more, tried, 81.0)] == [MISSED, MISSED]


def test_root_seeds_come_one_after_the_other_and_parts_are_all_together() -> None:
    every = searches(3)
    assert [search.root for search in every] == sorted(search.root for search in every)
    assert {(search.space.mutant, search.is_guided) for search in every[:4]} == {
        (mutant, guided) for mutant in (EASY, MISSED) for guided in (True, False)
    }


def test_the_smallest_catches_are_shrunk_until_one_fits_its_page(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for one in (chase(EASY, 9, KILL, KILL.replace("0]", "1]"), root=2), chase(EASY, 3, root=0), chase(EASY, 4, root=1)):
        kept.add_chase(one.to_json())
    assert [one.root for one in smallest(EASY, kept.chases())] == [0, 1, 2]
    makes = MakesUp()
    shrink_all([EASY, MISSED], 3, 60.0, kept, makes, lambda line: None)
    assert [one.root for one in makes.tasks] == [0, 1]  # the second is small enough
    again = MakesUp()
    shrink_all([EASY, MISSED], 3, 60.0, Kept(tmp_path), again, lambda line: None)
    assert again.tasks == []
    read, _ = load_storm(tmp_path / "found" / f"{EASY}-guided-1.storm.toml")
    assert (read.scenario, read.anomaly) == (storm(EASY), "lost-write")


def test_a_storm_is_shrunk_for_the_anomaly_that_most_catches_share() -> None:
    several = replace(chase(EASY, 3), anomalies=("consumer-offset-skip", "dirty-read", "lost-write"))
    (first, *_) = smallest(EASY, [several, chase(EASY, 4, KILL, KILL, root=1)])
    assert first.anomalies == ("lost-write", "consumer-offset-skip", "dirty-read")


def test_the_page_tells_what_was_caught_for_how_much_and_by_which_storm() -> None:
    chases = [
        *(chase(EASY, 2 + root, root=root, guided=guided) for root in range(3) for guided in (True, False)),
        *(chase(HARD, 40, root=root) for root in range(3)),
        *(chase(HARD, 120, root=root, guided=False, caught=root > 0) for root in range(3)),
        *(chase(MISSED, 50, root=root, guided=guided, caught=False) for root in range(3) for guided in (True, False)),
    ]
    small = [
        small_row(chase(EASY, 3), operations=7),
        small_row(chase(EASY, 3, *[KILL.replace("0]", f"{n}]") for n in range(4)], root=1), operations=2),
        small_row(chase(HARD, 40), operations=21),
    ]
    text = page(PROMISES, chases, [Small(row) for row in small])
    assert "from 3 root seeds" in text
    assert "- Caught: 2 of 3 (2 guided, 2 at random)." in text
    assert "- Within 60 processor seconds, guided, in the median: 1 of 3 (33%)." in text
    assert "- Shrunk to at most 3 faults and 20 operations: 1 of 3 (33%)." in text
    assert "random takes 3.00 times as many storms, in the median of the 1 that" in text
    assert "2.00 times as many a storm, 1.33 times in total, 2.00 times after equally many storms" in text
    assert "guided loses on: none" in text
    assert f"  - {MISSED}, in 300 storms of 600 processor s: {WHY_NOT.get(MISSED, 'nobody knows why')}" in text
    assert f"| {EASY} | lost-write | – | 3 of 3 | 3 | 6 | 3 of 3 | 3 | 6 | 1 | 7 |" in text
    assert f"| {HARD} | lost-write | – | 3 of 3 | 40 | 80 | 2 of 3 | 120 | 240 | 1 | 21 |" in text
    assert f"| {MISSED} | – | – | 0 of 3 | – | – | 0 of 3 | – | – | – | – |" in text


def test_where_the_guide_loses_is_listed() -> None:
    chases = [chase(HARD, 90), chase(HARD, 30, guided=False), chase(EASY, 9), chase(EASY, 2, guided=False)]
    text = page(PROMISES, chases, ())
    assert f"guided loses on: {HARD}.\n" in text  # the other is too easy to tell
    assert f"- Not searched for yet: {MISSED}." in text
    assert "| – | – |\n" in text  # nothing was made small


def test_a_storm_that_breaks_the_healthy_system_is_no_page_of_a_bug() -> None:
    row = small_row(chase(EASY, 3), operations=7, of_the_bug=False)
    assert "- Shrunk to at most 3 faults and 20 operations: 0 of" in page(PROMISES, [chase(EASY, 3)], [Small(row)])


def test_the_page_tells_what_was_given_and_at_which_revisions_was_searched(tmp_path: Path) -> None:
    given = {"workload": "pop", "client": "grpc", "orderly": True}
    text = page(PROMISES, [replace(chase(EASY, 3), given=given)], (), ["a1b2", "c3d4"])
    assert f"| {EASY} | lost-write | workload=pop, client=grpc, orderly=true | 1 of 1 |" in text
    assert "Searched at a1b2, c3d4.\n" in text
    kept = Kept(tmp_path)
    assert kept.revisions() == ()
    for revision in ("a1b2", "c3d4", "a1b2"):
        kept.add_revision(revision)
    assert Kept(tmp_path).revisions() == ("c3d4", "a1b2")


def test_a_search_that_is_given_something_else_is_made_again() -> None:
    tried = chase(EASY, 40)
    (search, *_) = searches_for([Space(system="rocketmq", workload="log", mutant=EASY, settings={})], 1, 40)
    assert left([search], [tried], None) == [search]
    assert left([search], [replace(tried, given=search.space.fixed_settings)], None) == []


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(name, marks=pytest.mark.gate if place % 3 else [])
        for place, name in enumerate(sorted({*SETTINGS, *(name for names in WORKLOADS.values() for name in names)}))
    ],
)
def test_what_is_given_to_a_search_is_for_a_planted_bug_and_can_be_run(mutant: str) -> None:
    assert mutant in MUTANTS
    space = space_for(mutant)
    space.require_possible()
    assert space.workload is None or space.is_possible(space.workload, {})
    assert sum(mutant in names for names in WORKLOADS.values()) == (space.workload is not None)


@pytest.mark.parametrize(
    ("system", "mutant"),
    [(system, mutant) for system, given in OF_OTHERS.items() for mutant in sorted(given)],
)
def test_what_is_given_to_a_search_for_a_bug_of_another_system_can_be_run(system: str, mutant: str) -> None:
    assert mutant in registry.system(system).mutants
    space_for(mutant, system).require_possible()


def test_reasons_are_for_bugs_that_are_planted() -> None:
    others = (registry.system(name).mutants for name in OF_OTHERS)
    assert set(WHY_NOT) <= set(MUTANTS).union(*others)


def test_a_page_of_guided_searches_alone_has_no_columns_of_others() -> None:
    text = page(PROMISES, [chase(EASY, 3), chase(MISSED, 50, caught=False)], (), system="dledger")
    assert text.startswith(
        "# Planted bugs of dledger, and what it took to catch them\n\nMade by `make searches SYSTEM="
    )
    assert "at random" not in text and "Guided against random" not in text
    assert "- Caught: 1 of 3.\n" in text
    assert f"| {EASY} | lost-write | – | 1 of 1 | 3 | 6 | – | – |" in text
    rows = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert set(rows) == {9}


def test_an_unknown_bug_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--mutant", "flush-lies"])
    assert "--mutant takes the name of one" in capsys.readouterr().err


@pytest.mark.gate
@pytest.mark.slow
def test_an_easy_bug_is_caught_made_small_and_told(tmp_path: Path) -> None:
    space = Space(system="rocketmq", workload="bank", mutant=SHALLOW, settings={})
    search = Search(space=space, root=0, numbers=range(40))

    def here(make: Callable[[Any], dict[str, Any]], tasks: Sequence[Any]) -> Iterator[dict[str, Any]]:
        return map(make, tasks)

    kept = Kept(tmp_path)
    search_all([search], None, kept, here, lambda line: None)
    (found,) = kept.chases()
    assert found.number is not None and found.scenario is not None
    assert found.is_caught and found.storms == found.number + 1
    assert chased_row(None, search) | {"processor_s": 0.0} == found.to_json() | {"processor_s": 0.0}
    shrink_all([SHALLOW], 1, 10.0, kept, here, lambda line: None)
    (small,) = kept.small()
    assert small.is_sound and small.faults <= len(found.scenario.schedule)
    read, _ = load_storm(tmp_path / "found" / f"{name_of(found)}.storm.toml")
    text = page({SHALLOW: "a transaction reads at one moment"}, kept.chases(), kept.small())
    assert "- Caught: 1 of 1" in text and read.anomaly in text
