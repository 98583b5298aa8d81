"""Objects that fall into parts: which calls belong together, and that the parts are judged as the whole would be."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from checkers.linearizable.history.calls import Row, calls_of
from checkers.linearizable.objects import MODELS
from checkers.linearizable.search.decision import LINEARIZABLE, NOT_LINEARIZABLE
from checkers.linearizable.search.parts import components, decide_parts, order_of_parts, parts
from checkers.linearizable.values import Truth, frozen

LIMIT = 100_000

Event = tuple[int, str, str, Any]
"""Process, type, f, value."""


def split(model: str, events: list[Event]) -> list[list[int]]:
    """The starts of the calls of each part."""
    calls = calls_of(MODELS[model], [Row(process, kind, f, frozen(value)) for process, kind, f, value in events])
    return [part.calls.start.tolist() for part in parts(MODELS[model], calls)]


def done(f: str, argument: Any, result: Any) -> list[Event]:
    return [(0, "invoke", f, argument), (0, "ok", f, result)]


@pytest.mark.parametrize(
    ("touched", "tied"),
    [
        ([], []),
        ([("a",), ("b",), ("a",)], [[0, 2], [1]]),
        ([("a",), ("b",), ("c",), ("b", "a")], [[0, 1, 3], [2]]),
        ([("a",), (), ()], [[0], [1], [2]]),
        ([("a",), None, ("b",)], [[0, 1, 2]]),
    ],
)
def test_calls_are_tied_by_what_they_touch(touched: list[tuple[Hashable, ...] | None], tied: list[list[int]]) -> None:
    assert components(touched) == tied


def test_a_set_falls_into_its_elements_unless_it_is_read_as_a_whole() -> None:
    adds = done("add", 1, 1) + done("add", 2, 2) + done("contains", 1, True)
    assert split("set", adds) == [[0, 4], [2]]
    assert split("set", [*adds, *done("read", None, [1, 2])]) == [[0, 2, 4, 6]]


def test_registers_are_tied_by_the_calls_on_several() -> None:
    events = done("txn", [["w", "x", 1]], [["w", "x", 1]]) + done("txn", [["r", "y", None]], [["r", "y", None]])
    assert split("multi-register", events) == [[0], [2]]
    both = [["r", "x", 1], ["r", "y", None]]
    assert split("multi-register", events + done("txn", both, both)) == [[0, 2, 4]]


def test_a_dequeue_of_unknown_outcome_ties_a_bag_only_where_a_dequeue_found_it_empty() -> None:
    events = [*done("enqueue", 1, 1), (9, "invoke", "dequeue", None), *done("enqueue", 2, 2), *done("dequeue", None, 2)]
    assert split("unordered-queue", events) == [[0], [3, 5]]
    assert split("unordered-queue", events + done("dequeue", None, None)) == [[0, 2, 3, 5, 7]]


def test_the_parts_agree_on_one_order_and_the_wrong_part_is_returned() -> None:
    model = MODELS["set"]
    rng = np.random.default_rng(1)
    rows: list[Row] = []
    for _ in range(200):
        # Two at a time: an add and a contains of the same element, which may see it or not.
        element = int(rng.integers(40))
        rows.append(Row(0, "invoke", "add", element))
        rows.append(Row(1, "invoke", "contains", element))
        rows.append(Row(0, "ok", "add", element))
        rows.append(Row(1, "ok", "contains", Truth.TRUE))
    found = parts(model, calls_of(model, rows))
    assert len(found) == len({row.value for row in rows if row.f == "add"})
    order = order_of_parts(found, limit=LIMIT)
    assert order is not None
    assert [start // 4 for start in order] == sorted(start // 4 for start in order)

    rows += [Row(0, "invoke", "contains", 41), Row(0, "ok", "contains", Truth.TRUE)]
    part, decision = decide_parts(parts(model, calls_of(model, rows)), limit=LIMIT)
    assert decision.outcome == NOT_LINEARIZABLE
    assert part.calls.start.tolist() == [800]
    assert decide_parts(found, limit=LIMIT)[1].outcome == LINEARIZABLE
    assert order_of_parts(parts(model, calls_of(model, rows)), limit=LIMIT) is None
