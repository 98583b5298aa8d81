"""Stacks and priority queues decided in O(n log n) against all orders: no verdict differs, orders replay, witnesses
convict alone, and hardly anything stays open."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome
from checkers.linearizable.objects import MODELS
from tests.references.decider_judgement import held_against_all_orders
from tests.references.queue_histories import linearizable, made_up_rows, spans_of
from tests.references.thousands import thousands

NAMES = ["priority-queue", "stack"]
MOST_OPERATIONS = 8
INITIAL = 3


def judge(name: str, rng: random.Random) -> Outcome:
    """The outcome for a made-up history, held against brute force."""
    model = MODELS[name]
    initial = tuple(rng.sample(range(INITIAL), rng.choice((0, 0, 0, 1, 2))))
    lies, unknown = rng.choice((0.0, 0.2, 0.6)), rng.choice((0.0, 0.1, 0.3, 0.5))
    rows = made_up_rows(model, initial, rng, rng.randint(1, MOST_OPERATIONS), lies=lies, unknown=unknown)
    spans = spans_of(model, rows)
    return held_against_all_orders(
        name, rows, spans, initial, lambda chosen: linearizable(model, spans, initial, chosen)
    )


@thousands()
@pytest.mark.parametrize("name", NAMES)
def test_no_collection_is_judged_otherwise_than_by_brute_force(name: str, seeds: range) -> None:
    judged = Counter(type(judge(name, random.Random(f"{name} {seed}"))) for seed in seeds)
    assert min(judged[Ordered], judged[Contradiction]) > len(seeds) // 10
    assert judged[Open] <= -(-len(seeds) // 1_000)
