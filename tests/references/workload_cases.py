"""Workloads, their checkers' settings, random histories of them, and the anomalies in these by definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.references.element_histories import (
    Done,
    defined_causal_reverse,
    defined_counter,
    defined_ids,
    defined_order,
    defined_queue,
    defined_set,
    operations_of,
    random_elements,
)
from tests.references.register_order_histories import (
    defined_causes,
    defined_forks,
    defined_growth,
    random_causes,
    random_forks,
    random_growth,
)

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    workload: str
    options: dict[str, str] = field(default_factory=dict)
    rows: Callable[[random.Random], list[Row]]
    defined: Callable[[list[Row]], Counter[str]]
    """Counts of anomalies; `undecided` if something else stands in the way of valid."""
    names: frozenset[str]
    """All anomalies that there are."""


def of_elements(
    workload: str, options: dict[str, str], defined: Callable[[list[Done]], Counter[str]], names: set[str]
) -> Case:
    return Case(
        workload=workload,
        options=options,
        rows=lambda rng: random_elements(rng, workload, 24),
        defined=lambda rows: defined(operations_of(rows)),
        names=frozenset(names),
    )


ONCE = {"delivery": "exactly-once"}
OF_QUEUE = {"lost", "duplicated", "unexpected", "aborted-read", "redelivered-after-ack"}
OF_FORKS = frozenset({"long-fork", "unexpected", "aborted-read"})

CASES = {
    "causal": Case(
        workload="causal",
        rows=random_causes,
        defined=defined_causes,
        names=frozenset(
            {"initial-read", "overwritten-read", "cyclic-causality", "unexpected", "aborted-read", "broken-link"}
        ),
    ),
    "causal-reverse": of_elements(
        "causal-reverse", {}, defined_causal_reverse, {"causal-reverse", "unexpected", "aborted-read"}
    ),
    "counter": of_elements("counter", {}, defined_counter, {"out-of-bounds"}),
    "long-fork": Case(
        workload="long-fork", rows=partial(random_forks, rewrites=0), defined=defined_forks, names=OF_FORKS
    ),
    "long-fork, written twice": Case(
        workload="long-fork",
        rows=partial(random_forks, rewrites=0.3),
        defined=defined_forks,
        names=OF_FORKS | {"rewritten"},
    ),
    "monotonic": Case(
        workload="monotonic",
        rows=random_growth,
        defined=defined_growth,
        names=frozenset({"nonmonotonic-read", "nonmonotonic-timestamp"}),
    ),
    "queue": of_elements("queue", ONCE, defined_queue, OF_QUEUE),
    "queue in order": of_elements(
        "queue",
        ONCE | {"order": "key"},
        lambda operations: defined_queue(operations) + defined_order(operations, by_producer=False),
        OF_QUEUE | {"out-of-order"},
    ),
    "queue in order of producers": of_elements(
        "queue",
        ONCE | {"order": "producer"},
        lambda operations: defined_queue(operations) + defined_order(operations, by_producer=True),
        OF_QUEUE | {"out-of-order"},
    ),
    "set": of_elements(
        "set", {"reads": "current"}, defined_set, {"lost", "stale", "duplicated", "unexpected", "aborted-read"}
    ),
    "unique-ids": of_elements("unique-ids", {}, defined_ids, {"duplicated"}),
}


def many(case: Case, seed: int, histories: int) -> tuple[list[Row], Counter[str]]:
    """So many histories one behind the other, under keys and processes of their own, and what is wrong in all."""
    rows: list[Row] = []
    defined: Counter[str] = Counter()
    for number in range(histories):
        mine = case.rows(random.Random(f"{case.workload} {seed} {number}"))
        defined += case.defined(mine)
        rows += [row | {"key": f"{row['key']}{number}", "process": row["process"] + 100 * number} for row in mine]
    return rows, defined
