"""Objects at which nearly all operations are at work at once, of values that repeat: what is hopeless is left, and no
verdict is another one for that."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from checkers.linearizable import replay
from checkers.linearizable.history.calls import calls_of
from checkers.linearizable.model import Model
from checkers.linearizable.objects import MODELS
from checkers.linearizable.search import decision
from checkers.linearizable.search.decision import LINEARIZABLE, NOT_LINEARIZABLE, decide_with_orders
from checkers.linearizable.search.foresight import Ended, first_stuck, foreseen
from checkers.linearizable.search.problem import problem_of
from checkers.search_budget import searching_until
from tests.properties.test_objects_against_brute_force import brute_force, judge, operations_of, rows_of
from tests.references.crowded_histories import ASKING, Rows, crowded
from tests.references.object_histories import made_up
from tests.references.thousands import thousands

LIMIT = 3_000_000
ENOUGH = 10_000_000
MANY = {"append-log": 30, "fifo-queue": 30, "stack": 18}
"""So many operations at once are decided."""


def drawn(model: Model, rng: random.Random, seed: int) -> Rows:
    if seed % 2:
        return made_up(model, rng, rng.randint(1, 7))
    return crowded(model, rng, rng.randint(1, 7), lies=rng.choice((0, 1, 1, 2)), unknown=rng.choice((0.0, 0.0, 0.3)))


@thousands()
@pytest.mark.parametrize("name", sorted(ASKING))
def test_what_is_hopeless_is_left_and_nothing_else(name: str, seeds: range) -> None:
    model = MODELS[name]
    found = []
    for seed in seeds:
        rows = drawn(model, random.Random(f"hopeless {name} {seed}"), seed)
        calls = calls_of(model, rows_of(rows))
        problem = problem_of(model, calls)
        ended = foreseen(problem, most=ENOUGH)
        found.append(ended.ended is Ended.FOUND)
        assert found[-1] is brute_force(name, operations_of(rows, False)), rows
        if found[-1]:
            order = calls.start[list(ended.order)].tolist()
            assert replay.fault(rows, {"k": order}, lambda: replay.OBJECTS[name](None), False) is None, rows
        else:
            stuck, before = first_stuck(problem, most=ENOUGH)
            assert stuck not in before.order and before.ended is Ended.FOUND, rows
            assert before.order or model.initial == before.state, rows
    assert min(found.count(True), found.count(False)) > len(seeds) // 20


@pytest.mark.parametrize("name", sorted(ASKING))
def test_verdicts_and_evidence_are_right_where_only_what_is_hopeless_is_left(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision, "FEW_STEPS", 0)
    monkeypatch.setattr(decision, "AT_FIRST", 0)
    monkeypatch.setattr(decision, "FORESEEN_SHARE", 1)
    judged = Counter(
        judge(MODELS[name], drawn(MODELS[name], random.Random(f"evidence {name} {seed}"), seed)) for seed in range(100)
    )
    assert min(judged[True], judged[False]) > 10


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 8), marks=pytest.mark.gate)], ids=["few", "more"])
@pytest.mark.parametrize("lies", [0, 1])
@pytest.mark.parametrize("name", sorted(ASKING))
def test_many_operations_at_once_are_decided(name: str, lies: int, seeds: range) -> None:
    model = MODELS[name]
    for seed in seeds:
        rows = crowded(model, random.Random(f"thirty {name} {seed}"), MANY[name], lies=lies)
        calls = calls_of(model, rows_of(rows))
        found = decide_with_orders(problem_of(model, calls), limit=LIMIT)
        assert found.outcome == LINEARIZABLE or (lies and found.outcome == NOT_LINEARIZABLE), (found, rows)
        if found.outcome == LINEARIZABLE:
            order = calls.start[list(found.orders[0])].tolist()
            assert replay.fault(rows, {"k": order}, lambda: replay.OBJECTS[name](None), False) is None, rows


def test_what_is_given_up_says_nothing() -> None:
    model = MODELS["fifo-queue"]
    problem = problem_of(model, calls_of(model, rows_of(crowded(model, random.Random("given up"), 30))))
    assert foreseen(problem, most=5).ended is Ended.GIVEN_UP
    with searching_until(0.0):
        assert foreseen(problem, most=ENOUGH).ended is not Ended.NOWHERE
