"""Sets and append-only logs decided in O(n log n) against all orders: no verdict differs, orders replay, witnesses
convict alone, and only what leaves the case stays open."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome
from checkers.linearizable.objects import MODELS
from tests.references.content_histories import Rows, made_up_contents, operations_in, spans_of_contents
from tests.references.decider_judgement import held_against_all_orders
from tests.references.queue_histories import has_order
from tests.references.thousands import thousands

NAMES = ["append-log", "set"]
MOST_OPERATIONS = 8


def leaves_the_case(rows: Rows, initial: tuple[int, ...]) -> bool:
    """An element is added or removed again, or there are removes, and reads of everything."""
    begun = [(row["f"], row["value"]) for row in rows if row["type"] == "invoke"]
    changes = [change for change in begun if change[0] in ("add", "remove")]
    again = len(set(changes)) < len(changes) or any(("add", element) in changes for element in initial)
    read = any(row["type"] == "ok" and row["f"] == "read" for row in rows)
    return again or (read and any(f == "remove" for f, _ in changes))


def judge(name: str, rng: random.Random) -> Outcome:
    """The outcome for a made-up history, held against brute force."""
    model = MODELS[name]
    initial = tuple(range(rng.choice((0, 0, 0, 1, 2))))
    lies, unknown = rng.choice((0.0, 0.1, 0.3)), rng.choice((0.0, 0.1, 0.3, 0.5))
    rows = made_up_contents(model, initial, rng, rng.randint(1, MOST_OPERATIONS), lies=lies, unknown=unknown)
    spans, operations = spans_of_contents(model, rows), operations_in(rows)
    begin = model.beginning_with(list(initial))
    outcome = held_against_all_orders(
        name, rows, spans, initial, lambda chosen: has_order(begin, [operations[i] for i in chosen])
    )
    assert not isinstance(outcome, Open) or leaves_the_case(rows, initial), (rows, initial, outcome)
    return outcome


@thousands()
@pytest.mark.parametrize("name", NAMES)
def test_no_contents_are_judged_otherwise_than_by_brute_force(name: str, seeds: range) -> None:
    judged = Counter(type(judge(name, random.Random(f"{name} {seed}"))) for seed in seeds)
    assert min(judged[Ordered], judged[Contradiction]) > len(seeds) // 10
    assert judged[Open] <= (0 if name == "append-log" else len(seeds) // 8)
