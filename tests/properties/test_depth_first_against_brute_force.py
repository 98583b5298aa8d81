"""The search for one order, depth first: it finds one exactly where there is one, whatever the model, and what it finds
is an order."""

from __future__ import annotations

import random

import pytest

from checkers.linearizable import replay
from checkers.linearizable.history.calls import calls_of
from checkers.linearizable.model import FailedCas
from checkers.linearizable.search import decision
from checkers.linearizable.search import descent as of_one_order
from checkers.linearizable.search.decision import LINEARIZABLE, decide_with_orders
from checkers.linearizable.search.descent import Descent, descent
from checkers.linearizable.search.orders import placed
from checkers.linearizable.search.problem import problem_of
from checkers.linearizable.search.timeline import Problem, layout
from checkers.search_budget import searching_until
from tests.properties.test_objects_against_brute_force import brute_force, judge, operations_of, rows_of
from tests.references.object_histories import VARIANTS, made_up
from tests.references.thousands import thousands

ENOUGH = 10_000_000


def sought(problem: Problem) -> Descent:
    return descent(problem, layout(problem), most=ENOUGH, elements=ENOUGH)


@thousands()
@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_an_order_is_found_exactly_where_there_is_one(name: str, seeds: range) -> None:
    model = VARIANTS[name]
    answers = model.failed_cas is FailedCas.ANSWER
    found = []
    for seed in seeds:
        rng = random.Random(f"depth first {name} {seed}")
        rows = made_up(model, rng, rng.randint(1, 8))
        calls = calls_of(model, rows_of(rows))
        problem = problem_of(model, calls)
        steps = sought(problem).steps
        found.append(steps is not None)
        assert found[-1] is brute_force(model.name, operations_of(rows, answers)), rows
        if steps is not None:
            order = calls.start[placed(problem, steps)].tolist()
            wrong = replay.fault(rows, {"k": order}, lambda: replay.OBJECTS[model.name](None), answers)
            assert wrong is None, (wrong, rows)
    assert min(found.count(True), found.count(False)) > len(seeds) // 20


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_verdicts_and_certificates_are_right_also_where_one_order_is_sought_first(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision, "FEW_OPERATIONS", 0)
    monkeypatch.setattr(decision, "AT_FIRST", 0)
    for seed in range(40):
        rng = random.Random(f"one order first {name} {seed}")
        judge(VARIANTS[name], made_up(VARIANTS[name], rng, rng.randint(1, 8)))


@pytest.mark.parametrize("name", ["cas-register", "counter", "map"])
def test_a_search_that_looks_at_the_clock_or_gets_tired_goes_on_where_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = VARIANTS[name]
    for seed in range(40):
        rng = random.Random(f"looks {name} {seed}")
        problem = problem_of(model, calls_of(model, rows_of(made_up(model, rng, 10))))
        whole = sought(problem)
        with monkeypatch.context() as looking:
            looking.setattr(of_one_order, "BETWEEN_LOOKS", 1)
            assert sought(problem)[:2] == whole[:2]


def test_what_is_given_up_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "FEW_OPERATIONS", 0)
    monkeypatch.setattr(decision, "AT_FIRST", 0)
    model = VARIANTS["counter"]
    rows = made_up(model, random.Random("given up"), 8)
    problem = problem_of(model, calls_of(model, rows_of(rows)))
    assert descent(problem, layout(problem), most=0, elements=ENOUGH).steps is None
    assert descent(problem, layout(problem), most=ENOUGH, elements=0).steps is None
    with searching_until(0.0):
        assert sought(problem).steps is None
    monkeypatch.setattr(decision, "DIVE_STEPS", 0)
    expected = brute_force(model.name, operations_of(rows, False))
    assert (decide_with_orders(problem, limit=ENOUGH).outcome == LINEARIZABLE) is expected
