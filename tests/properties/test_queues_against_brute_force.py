"""Queues decided in O(n log n) against all orders: no verdict differs, orders replay, and witnesses convict alone."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome
from checkers.linearizable.objects import MODELS
from tests.references.decider_judgement import decider, fault_of_order, held_against_all_orders
from tests.references.queue_histories import linearizable, made_up_rows, spans_of
from tests.references.thousands import thousands

MOST_OPERATIONS = 8


def judge(name: str, rng: random.Random) -> Outcome:
    """The outcome for a made-up history, held against brute force."""
    model = MODELS[name]
    initial = tuple(range(rng.choice((0, 0, 0, 1, 2))))
    lies, unknown = rng.choice((0.0, 0.2, 0.6)), rng.choice((0.0, 0.1, 0.3, 0.5))
    rows = made_up_rows(model, initial, rng, rng.randint(1, MOST_OPERATIONS), lies=lies, unknown=unknown)
    spans = spans_of(model, rows)
    return held_against_all_orders(
        name, rows, spans, initial, lambda chosen: linearizable(model, spans, initial, chosen)
    )


@pytest.mark.parametrize("unknown", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("name", ["fifo-queue", "unordered-queue"])
def test_a_long_history_of_a_true_queue_is_ordered(name: str, unknown: float) -> None:
    rng = random.Random(f"long {name} {unknown}")
    initial = (0, 1, 2)
    rows = made_up_rows(MODELS[name], initial, rng, 400, lies=0.0, unknown=unknown)
    spans = spans_of(MODELS[name], rows)
    assert isinstance(decider(name).decide(spans, initial), Ordered)
    assert fault_of_order(name, rows, spans, initial) is None


@thousands()
@pytest.mark.parametrize("name", ["fifo-queue", "unordered-queue"])
def test_no_queue_is_judged_otherwise_than_by_brute_force(name: str, seeds: range) -> None:
    judged = Counter(type(judge(name, random.Random(f"{name} {seed}"))) for seed in seeds)
    assert min(judged[Ordered], judged[Contradiction]) > len(seeds) // 20
    assert not judged[Open]
