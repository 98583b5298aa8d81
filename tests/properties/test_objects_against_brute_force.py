"""Every model's decision against all orders, tried with objects too simple to be wrong; every answer is certified.

The objects are those of `replay`, which shares no code with the checker.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from checkers.linearizable import replay
from checkers.linearizable.evidence.window import UnorderableWindow, window
from checkers.linearizable.history.calls import Calls, Row, calls_of
from checkers.linearizable.model import FailedCas, Model
from checkers.linearizable.search import decision
from checkers.linearizable.search.decision import LINEARIZABLE, NOT_LINEARIZABLE, decide_with_orders
from checkers.linearizable.search.parts import Part, decide_parts, order_of_parts, parts
from checkers.linearizable.search.problem import problem_of
from checkers.linearizable.values import NEVER, frozen
from tests.references.object_histories import BEGINNINGS, VARIANTS, Rows, made_up
from tests.references.thousands import thousands

LIMIT = 1_000_000
MOST_OPERATIONS = 8

Operation = tuple[int, int, str, Any, Any, bool]
"""Begin, end, f, argument, result, whether the result is known."""


def operations_of(rows: Rows, answers: bool) -> list[Operation]:
    """Without what failed."""
    found: list[Operation] = []
    opened: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        if row["type"] == "invoke":
            opened[row["process"]] = row
            continue
        begin = opened.pop(row["process"])
        start = (begin["index"], row["index"], begin["f"], begin["value"])
        if row["type"] == "ok":
            found.append((*start, row["value"], True))
        elif row["type"] == "info":
            found.append((begin["index"], NEVER, begin["f"], begin["value"], None, False))
        elif answers and row["f"] == "cas":
            found.append((*start, "failed", True))
    return found + [(row["index"], NEVER, row["f"], row["value"], None, False) for row in opened.values()]


def brute_force(model: str, operations: list[Operation], initial: Any = None) -> bool:
    """Try every order that respects time, with any of the indefinite operations."""

    def explained(order: list[Operation], left: list[Operation]) -> bool:
        run = replay.OBJECTS[model](initial)
        if not all([run(f, argument, result, known) for _, _, f, argument, result, known in order]):
            return False
        if all(end == NEVER for _, end, *_ in left):
            return True
        first_end = min(end for _, end, *_ in left)
        return any(
            explained([*order, one], [other for other in left if other is not one])
            for one in left
            if one[0] <= first_end
        )

    return explained([], operations)


def rows_of(rows: Rows) -> list[Row]:
    return [Row(row["process"], row["type"], row["f"], frozen(row["value"]), None, row["index"]) for row in rows]


def judge(model: Model, rows: Rows, initial: Any = None) -> bool:
    """Whether it is linearizable, as a whole and part by part, held against brute force and certified."""
    answers = model.failed_cas is FailedCas.ANSWER
    calls = calls_of(model, rows_of(rows))
    problem = problem_of(model, calls)
    found = decide_with_orders(problem, limit=LIMIT)
    operations = operations_of(rows, answers)
    expected = LINEARIZABLE if brute_force(model.name, operations, initial) else NOT_LINEARIZABLE
    own = parts(model, calls)
    culprit, by_parts = decide_parts(own, limit=LIMIT)
    assert (found.outcome, by_parts.outcome) == (expected, expected), rows
    if expected == LINEARIZABLE:
        for order in ([int(calls.start[number]) for number in found.orders[0]], order_of_parts(own, limit=LIMIT)):
            assert order is not None
            wrong = replay.fault(rows, {"k": order}, lambda: replay.OBJECTS[model.name](initial), answers)
            assert wrong is None, (wrong, rows)
    else:
        for part, decided in ((Part(calls=calls, problem=problem), found), (culprit, by_parts)):
            proof = window(part.problem, decided, limit=LIMIT)
            _assert_smallest(model, part, proof)
            begins = set(part.calls.start[proof.numbers].tolist())
            assert int(part.calls.start[proof.stuck]) in begins
            if proof.before == (model.initial,):
                assert not brute_force(model.name, [one for one in operations if one[0] in begins], initial), rows
    return expected == LINEARIZABLE


def orderable(model: Model, calls: Calls, loose: frozenset[int], state: Any) -> bool:
    """Whether there is an order of the calls, each of the loose ones as if it had not ended."""

    def explained(state: Any, left: frozenset[int]) -> bool:
        definite = [number for number in left if number not in loose and calls.end[number] != NEVER]
        first_end = min((int(calls.end[number]) for number in definite), default=NEVER)
        return not definite or any(
            explained(after, left - {number})
            for number in left
            if calls.start[number] <= first_end
            for after in model.step(state, calls.calls[number])
        )

    return explained(state, frozenset(range(len(calls.calls))))


def _assert_smallest(model: Model, part: Part, proof: UnorderableWindow) -> None:
    """Whatever else happened meanwhile, it cannot be ordered; with any one of it left out it could."""
    concerned = np.sort(np.concatenate((proof.numbers, proof.loose)))
    calls = part.calls.part(concerned)
    known = set(proof.numbers.tolist())

    def fits(others: set[int]) -> bool:
        loose = frozenset(at for at, number in enumerate(concerned.tolist()) if number not in others)
        return any(orderable(model, calls, loose, state) for state in proof.before)

    assert not fits(known)
    assert all(fits(known - {number}) for number in known)


def _judge_many(name: str, seeds: range) -> None:
    judged = []
    for seed in seeds:
        rng = random.Random(f"objects {name} {seed}")
        initial = BEGINNINGS.get(name) if seed % 2 else None
        model = VARIANTS[name] if initial is None else VARIANTS[name].beginning_with(initial)
        judged.append(judge(model, made_up(model, rng, rng.randint(1, MOST_OPERATIONS)), initial))
    assert min(judged.count(True), judged.count(False)) > len(seeds) // 20


@thousands()
@pytest.mark.parametrize("few", [0, decision.FEW_OPERATIONS])
@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_no_object_is_judged_otherwise_than_by_brute_force(
    name: str, few: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision, "FEW_OPERATIONS", few)
    _judge_many(name, seeds)


COMPUTING = ("counter", "fenced-lock", "leased-lock", "map", "mutex", "priority-queue")
"""Objects that do not take any value, or take none."""


def with_truths(f: str, value: Any) -> Any:
    """2 is true, and 3 is false; positions of a log stay what they are."""
    if isinstance(value, list):
        return [
            one if f == "append" and at == 0 and len(value) == 2 else with_truths(f, one)
            for at, one in enumerate(value)
        ]
    return {2: True, 3: False}.get(value, value) if type(value) is int else value


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - set(COMPUTING)))
def test_true_is_no_number_to_any_object(name: str) -> None:
    rng = random.Random(f"truths {name}")
    model = VARIANTS[name]
    judged = []
    for _ in range(150):
        rows = [
            row | {"value": with_truths(row["f"], row["value"])}
            for row in made_up(model, rng, rng.randint(1, MOST_OPERATIONS))
        ]
        judged.append(judge(model, rows))
    assert min(judged.count(True), judged.count(False)) > 7


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_searches_that_take_turns_judge_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "FEW_OPERATIONS", 0)
    monkeypatch.setattr(decision, "AT_FIRST", 0)
    monkeypatch.setattr(decision, "TURN", 1)
    monkeypatch.setattr(decision, "DIVE_STEPS", 0)
    _judge_many(name, range(100))
