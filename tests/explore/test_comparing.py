"""What a search costs until it catches something is counted up to the catch, and does not depend on who tries it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormproof.search import compare
from stormproof.search.compare import Chase, both_ways, chased, compared
from stormproof.search.guide import ROUND
from stormproof.search.search import Search
from stormproof.search.space import Space
from stormproof.search.trial import Task
from tests.explore.test_search import row_of

BUG = "flush-lie"


class Storms:
    """Those with these numbers break a promise with the bug; the healthy system those of seeds that it was told."""

    def __init__(self, *invalid: int, broken_anyway: frozenset[int] = frozenset()) -> None:
        self.invalid, self.broken_anyway = invalid, broken_anyway
        self.numbers: list[int] = []
        self.seed_of: dict[int, int] = {}

    def __call__(self, task: Task) -> dict[str, Any]:
        if task.scenario.mutant is None:
            is_broken = task.scenario.seed in {self.seed_of[number] for number in self.broken_anyway}
        else:
            self.numbers.append(task.number)
            self.seed_of[task.number] = task.scenario.seed
            is_broken = task.number in self.invalid
        return row_of(task, verdict="invalid" if is_broken else "valid")


def search(count: int | None = None, mutant: str | None = BUG) -> Search:
    space = Space(system="rocketmq", mutant=mutant, settings={})
    return Search(space=space, root=3, numbers=None if count is None else range(count), is_guided=False)


def test_a_search_ends_with_its_first_catch_in_the_midst_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    storms = Storms(ROUND + 2, ROUND + 5)
    monkeypatch.setattr(compare, "tried", storms)
    chase = chased(search(), None)
    assert storms.numbers == list(range(ROUND + 3))
    assert (chase.is_caught, chase.number, chase.storms) == (True, ROUND + 2, ROUND + 3)
    assert chase.processor_s == pytest.approx(0.1 * (ROUND + 3))
    assert chase.states == (ROUND, ROUND + 3)
    assert chase.anomalies == ("lost-write",) and chase.scenario is not None
    assert Chase.from_json(chase.to_json()) == chase


def test_what_the_healthy_system_breaks_as_well_is_no_catch(monkeypatch: pytest.MonkeyPatch) -> None:
    storms = Storms(2, 4, broken_anyway=frozenset({2}))
    monkeypatch.setattr(compare, "tried", storms)
    assert chased(search(), None).number == 4


def test_without_a_planted_bug_whatever_breaks_a_promise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(task: Task) -> dict[str, Any]:
        return row_of(task, verdict="invalid" if task.number == 2 else "valid")

    monkeypatch.setattr(compare, "tried", tried)
    assert chased(search(mutant=None), None).number == 2


@pytest.mark.parametrize(("count", "most_s", "storms"), [(5, None, 5), (None, 0.75, 8), (5, 0.75, 5)])
def test_a_search_that_catches_nothing_ends_with_its_bound(
    count: int | None, most_s: float | None, storms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "tried", Storms())
    chase = chased(search(count), most_s)
    assert (chase.is_caught, chase.storms, chase.scenario) == (False, storms, None)
    assert Chase.from_json(chase.to_json()) == chase


def test_searches_are_compared_in_whatever_order_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "tried", Storms(1))

    def backwards(make: Callable[[Any], dict[str, Any]], tasks: Any) -> Any:
        return (make(one) for one in reversed(tasks))

    said: list[str] = []
    result = compared(search(), 2, None, backwards, said.append)
    assert [chase.root for chase in result.guided] == [chase.root for chase in result.random] == [3, 4]
    assert len(both_ways(search(), 2)) == len(said) == 4
    assert "guided  caught 2 of 2; storms 2 · 2 · 2" in "\n".join(result.lines())
