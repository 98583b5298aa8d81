"""A search with a deadline decides what it would decide without one, if it comes that far, and else nothing."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from checkers.linearizable.history.calls import calls_of
from checkers.linearizable.object_findings import object_findings
from checkers.linearizable.objects import MODELS
from checkers.linearizable.search import decision
from checkers.linearizable.search.decision import LINEARIZABLE, NOT_LINEARIZABLE, UNDECIDED, decide
from checkers.linearizable.search.problem import problem_of
from checkers.search_budget import searching_until
from tests.properties.test_objects_against_brute_force import rows_of
from tests.properties.test_routing_of_contents import kernel_rows
from tests.references.object_histories import made_up

FAR = 1e12
LIMIT = 1_000_000
NAMES = ["map", "cas-register", "counter", "fifo-queue"]


@pytest.mark.parametrize("name", NAMES)
def test_looks_at_the_clock_change_no_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "BETWEEN_LOOKS", 1)
    rng = random.Random(f"deadline {name}")
    outcomes = []
    for _ in range(100):
        model = MODELS[name]
        problem = problem_of(model, calls_of(model, rows_of(made_up(model, rng, rng.randint(1, 10)))))
        plain = decide(problem, limit=LIMIT)
        with searching_until(FAR):
            looked = decide(problem, limit=LIMIT)
        assert (looked.outcome, looked.stuck_at) == (plain.outcome, plain.stuck_at)
        # States are numbered as they are met, so their order differs.
        assert set(looked.possible) == set(plain.possible)
        outcomes.append(plain.outcome)
    assert min(outcomes.count(LINEARIZABLE), outcomes.count(NOT_LINEARIZABLE)) > 5


def test_what_is_not_decided_by_then_is_undecided() -> None:
    model = MODELS["counter"]
    problem = problem_of(model, calls_of(model, rows_of(made_up(model, random.Random("over"), 10))))
    with searching_until(0.0):
        found = decide(problem, limit=LIMIT)
    assert (found.outcome, found.explored, found.reason) == (UNDECIDED, 0, "there was no time left")
    assert decide(problem, limit=LIMIT).outcome != UNDECIDED


@pytest.mark.parametrize("name", ["fifo-queue", "stack", "set", "append-log", "register"])
def test_what_a_decider_decides_is_decided_and_shown_also_when_searches_are_over(name: str) -> None:
    rng = random.Random(f"over {name}")
    model = MODELS[name]
    invalid = 0
    for _ in range(200):
        rows = kernel_rows(made_up(model, rng, 8))
        found = _named(object_findings(rows, model=model, limit=LIMIT))
        with searching_until(0.0):
            over = _named(object_findings(rows, model=model, limit=LIMIT))
        undecided = over.keys() & {"undecided"}
        assert undecided or over.keys() == found.keys()
        if "nonlinearizable" in over:
            invalid += 1
            assert over["nonlinearizable"]["count"] == found["nonlinearizable"]["count"]
    assert invalid > 5


def _named(findings: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in findings.to_pylist()[::-1]}
