"""Entries of maps decided in O(n log n) against all orders: no verdict differs, orders replay, witnesses convict, and
only what cannot be told apart stays open."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from checkers.linearizable import replay
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered
from checkers.linearizable.history.rows import object_rows
from checkers.linearizable.object_findings import object_findings, object_orders
from checkers.linearizable.objects import MODELS
from checkers.linearizable.question import Question, asked
from checkers.linearizable.searches import NONLINEARIZABLE
from harness.record.history import history_schema
from tests.references.map_histories import VALUES, Rows, as_witnesses, beginning, made_up_entry, operations_in
from tests.references.queue_histories import has_order
from tests.references.thousands import thousands

MODEL = MODELS["map"]
LIMIT = 1_000_000
MOST_OPERATIONS = 8
JSON = pa.struct([pa.field("json", pa.string())])
INITIAL: dict[str, Any] = {"texts": "i;", "again": "a", "alike": "a", "lists": ["i"], "numbers": 77}
EMPTY: dict[str, Any] = {"lists": [], "numbers": None}
"""What is empty of these; elsewhere a text."""


def kernel_rows(rows: Rows) -> pa.Table:
    written = [row | {"time": row["index"], "value": {"json": json.dumps(row["value"])}, "node": None} for row in rows]
    return object_rows(pa.Table.from_pylist(written, schema=history_schema(JSON)), buckets=1)


def made_up(values: str, rng: random.Random, most_lies: float = 0.3) -> tuple[Any, Rows]:
    initial = rng.choice((None, None, INITIAL[values], EMPTY.get(values, "")))
    lies, unknown = rng.choice((0.0, 0.1, most_lies)), rng.choice((0.0, 0.1, 0.3))
    return initial, made_up_entry(initial, values, rng, rng.randint(2, MOST_OPERATIONS), lies=lies, unknown=unknown)


def judge(values: str, rng: random.Random) -> type:
    """The kind of outcome for a made-up history, held against brute force."""
    initial, rows = made_up(values, rng)
    model = beginning(MODEL, initial)
    question = asked(model, kernel_rows(rows))
    if isinstance(question, Open):
        return Open
    outcome = question.decide()
    if isinstance(outcome, Open):
        return Open
    operations = operations_in(rows)
    expected = has_order(model, operations)
    assert isinstance(outcome, Ordered if expected else Contradiction), (rows, initial, outcome)
    if isinstance(outcome, Contradiction):
        starts = set(question.spans.start[sorted(outcome.operations)].tolist())
        assert not has_order(model, as_witnesses(operations, starts)), (rows, initial, outcome)
    else:
        wrong = replay.fault(rows, {"k": question.order().tolist()}, lambda: replay.OBJECTS["map"](initial), False)
        assert wrong is None, (rows, initial, wrong)
    return type(outcome)


@thousands()
@pytest.mark.parametrize("values", list(VALUES))
def test_no_entry_is_judged_otherwise_than_by_brute_force(values: str, seeds: range) -> None:
    judged = Counter(judge(values, random.Random(f"{values} {seed}")) for seed in seeds)
    assert min(judged[Ordered], judged[Contradiction]) > len(seeds) // 50, judged
    most_open = {"texts": 0, "lists": 0, "numbers": len(seeds) // 20}.get(values, len(seeds) // 3)
    assert judged[Open] <= most_open, judged


@pytest.mark.parametrize("values", list(VALUES))
def test_the_kernels_say_of_an_entry_what_brute_force_says(values: str) -> None:
    rng = random.Random(f"kernels {values}")
    broken = 0
    for _ in range(150):
        initial, rows = made_up(values, rng, most_lies=0.8)
        model, operations, table = beginning(MODEL, initial), operations_in(rows), kernel_rows(rows)
        found = object_findings(table, model=model, limit=LIMIT).to_pylist()
        told = [row for row in found if row["name"] == NONLINEARIZABLE and row["because"]]
        orders = object_orders(table, model=model, limit=LIMIT).to_pylist()
        assert len(orders) == has_order(model, operations) == (not told), (rows, initial, told)
        for row in told:
            broken += 1
            last = max(row["operations"])
            assert has_order(model, operations_in(rows[:last])), (rows, row)
            question = asked(model, kernel_rows(rows))
            if isinstance(question, Question) and isinstance(question.decide(), Contradiction):
                # A search begins its windows in the states in which the entry can have been by then.
                witnesses = as_witnesses(operations_in(rows[: last + 1]), set(row["operations"]))
                assert not has_order(model, witnesses), (rows, initial, row)
            for prefix in json.loads(row["details"])["longest_prefixes"]:
                for answer in prefix["would_have_told"]:
                    instead = [*rows[:last], rows[last] | {"value": json.loads(answer)}]
                    assert has_order(model, operations_in(instead)), (rows, row)
    assert broken > 5


def test_what_a_get_shows_is_read_in_one_way_or_left_to_the_search() -> None:
    def entry(*appended: str, read: str) -> type:
        rows: Rows = []
        for process, (f, value, answer) in enumerate(
            [*(("append", one, one) for one in appended), ("get", None, read)]
        ):
            row = {"process": process, "f": f, "key": "k", "error": None}
            rows += [row | {"index": len(rows), "type": "invoke", "value": value}]
            rows += [row | {"index": len(rows), "type": "ok", "value": answer}]
        question = asked(MODEL, kernel_rows(rows))
        return type(question.decide()) if isinstance(question, Question) else Open

    assert entry("a", "ab", read="aab") is Ordered
    assert entry("ab", "a", read="aab") is Contradiction
    assert entry("a", "aa", "aaa", read="aaaaaa") is Open
    assert entry("a", "b", read="ba") is Contradiction
    assert entry("a", "b", read="abc") is Contradiction
