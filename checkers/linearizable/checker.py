"""The linearizability checker for any model: each object behaves as if its operations happened one by one.

It claims that the operations on each key can be put in an order in which the model allows every one of them, and an
operation that ended before another one began comes before it. Objects are independent: if each of them is linearizable,
all of them together are.

It takes histories whose functions are those of the model, with the object as key. The value is a struct: a member
`json` holds any value as JSON text; otherwise `expected` and `value` are the pair of a compare-and-set, or `value` is
the value. An operation that failed did not happen (but see `FailedCas`). One that is indefinite or never completed may
have taken effect at any time after its invocation, or never.

What breaks it: `nonlinearizable`, one anomaly for each key, with the shortest window found that cannot be ordered, and
for each longest valid order what the operation behind it would have had to return. An object that could not be decided
within bounds makes the result UNKNOWN, which says how far the search came. Once an object is found that cannot be
ordered, no further search begins in its bucket unless all are asked for, and the result names the objects that were
left.

It does not establish anything about operations on several objects at once (but a multi-register is one object).

Objects to which no value is given twice are decided in O(n log n) (`objects`), others by a bounded search (`search`).
Registers of integers are columns all the way, of any size (`registers`).

Mutants it kills: vote-not-durable, local-read, ignore-append-result, serve-before-noop, empty-write-skips-log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import pyarrow as pa

from checkers.api.findings import FINDINGS, gathered_findings, judge
from checkers.api.plan import CheckRequest, Dataset, Engine
from checkers.api.tallies import Tally
from checkers.api.verdict import CheckerResult
from checkers.buckets import bucket_count
from checkers.certified import CertifiedHistory
from checkers.history_batches import Source, history_rows
from checkers.linearizable.evidence.failed_attempts import with_failed_attempts
from checkers.linearizable.history.rows import COLUMNS, ROWS, object_rows
from checkers.linearizable.model import Model
from checkers.linearizable.object_findings import OBJECTS, ORDERS, object_findings, object_orders
from checkers.linearizable.registers import findings as registers
from checkers.linearizable.searches import NONLINEARIZABLE, UNDECIDED_OBJECT, UNSEARCHED
from checkers.prefix import Finals, by_their_names
from checkers.search_budget import Searches
from harness.record.meaning import Meaning

CONFIGURATIONS = 3_000_000
"""The most configurations that are explored for one object. It takes seconds if they are small, minutes if they have
many states."""

CERTIFIED_ROWS = 40_000_000
"""The most rows of a history that is certified, because all of its orders are gathered: an operation has one or two
rows and is named once."""

ORDERS_WRITTEN_AT_ONCE = 10_000


class TooLargeToCertify(Exception):
    """The history has too many rows to gather its orders; says how many, and what to do."""


MEANINGS: Mapping[str, Meaning] = {
    "nonlinearizable": Meaning(
        says="No order of an object's operations fits both real time and what clients saw.",
        usually="A stale read from a deposed leader or a lagging replica, a lost write, or one that was applied twice.",
    ),
}


OPEN_OBJECTS = "open_objects"
"""The name in the statistics for {"count", "named"} of objects that were not searched, or not to the end."""


@dataclass(frozen=True)
class Linearizable:
    """Judges a history of objects of one model, object by object."""

    model: Model
    max_configurations: int = CONFIGURATIONS
    """The most configurations that are explored for one object."""
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS

    @property
    def name(self) -> str:
        return "linearizable"

    @property
    def final_on_a_prefix(self) -> Finals:
        return by_their_names(*self.meanings) if self.model.is_prefix_closed else {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        found = gathered_findings(engine, self._findings(request, engine))
        undecided, unsearched = found.tally(UNDECIDED_OBJECT), found.tally(UNSEARCHED)
        reasons = [example.because for example in undecided.examples]
        if undecided.count > len(reasons):
            reasons.append(f"{undecided.count - len(reasons)} more objects are undecided")
        reasons += _unsearched(unsearched)
        history = engine.history(request.history, COLUMNS)
        return judge(
            with_failed_attempts(engine, history, found.anomalies),
            legal=request.legal,
            undecided=reasons,
            statistics={**found.counts(OBJECTS), **_open(undecided, unsearched)},
        )

    def certify(
        self,
        request: CheckRequest,
        engine: Engine,
        write: Callable[[Iterable[str]], None],
        history: CertifiedHistory | None = None,
    ) -> str:
        """Write an order for each object that has one, a line with a JSON object {"key", "order"}; returns how many.

        The order names operations by the indices of their invocations. Before them comes a line with the model, its
        options and `history`: {"model", "failed_cas"}, {"initial"} where another one than the model's was given, and
        {"history"}. `replay` checks the orders against the history. `write` takes the lines of the file, once.
        Raises TooLargeToCertify.
        """
        require_certifiable(request.history)
        orders = engine.gather(self._orders(request, engine), CERTIFIED_ROWS).sort_by("key")
        write(chain([json.dumps(_head(self.model, history)) + "\n"], _lines(orders)))
        return f"orders    {orders.num_rows}"

    def _findings(self, request: CheckRequest, engine: Engine) -> Dataset:
        history, rows = engine.history(request.history, COLUMNS), history_rows(request.history)
        limit, model = self.max_configurations, self.model
        # If the anomaly is legal throughout, no finding makes the verdict certain.
        which = Searches.ALL if NONLINEARIZABLE in request.legal else request.searches
        if registers.hold_integers(model, history):
            # Only rows with the model's functions count, because a history may have several strands.
            return registers.findings(engine, history, rows, model=model, limit=limit, which=which)
        kernel = partial(object_findings, model=model, limit=limit, which=which)
        return engine.grouped(_by_object(engine, history, rows), ("bucket",), kernel, FINDINGS)

    def _orders(self, request: CheckRequest, engine: Engine) -> Dataset:
        history, rows = engine.history(request.history, COLUMNS), history_rows(request.history)
        limit = self.max_configurations
        if registers.hold_integers(self.model, history):
            return registers.orders(engine, history, rows, model=self.model, limit=limit)
        kernel = partial(object_orders, model=self.model, limit=limit)
        return engine.grouped(_by_object(engine, history, rows), ("bucket",), kernel, ORDERS)


def _open(*left: Tally) -> dict[str, Any]:
    """How many objects were not decided, and the first of them; empty if all were."""
    count = sum(tally.count for tally in left)
    named = [example.key or "" for tally in left for example in tally.examples]
    return {OPEN_OBJECTS: {"count": count, "named": named}} if count else {}


def _unsearched(left: Tally) -> list[str]:
    if not left.count:
        return []
    named = ", ".join(one.key or "the object" for one in left.examples)
    more = f" and {left.count - len(left.examples)} more" if left.count > len(left.examples) else ""
    return [f"not searched, for the verdict was certain: {named}{more} (--all-findings searches them as well)"]


def require_certifiable(history: Source) -> None:
    """Raises TooLargeToCertify if the history has too many rows."""
    rows = history_rows(history)
    if rows > CERTIFIED_ROWS:
        raise TooLargeToCertify(
            f"orders are written for histories of at most {CERTIFIED_ROWS} rows, this one has {rows}; "
            "check it without --certify, or some of its keys at a time"
        )


def _head(model: Model, history: CertifiedHistory | None) -> dict[str, Any]:
    head: dict[str, Any] = {"model": model.name, "failed_cas": model.failed_cas.value}
    if model.initial_json is not None:
        head["initial"] = json.loads(model.initial_json)
    return head if history is None else head | {"history": history.to_json()}


def _lines(orders: pa.Table) -> Iterator[str]:
    for some in orders.to_batches(max_chunksize=ORDERS_WRITTEN_AT_ONCE):
        for key, order in zip(some["key"], some["order"], strict=True):
            yield json.dumps({"key": key.as_py(), "order": order.as_py()}) + "\n"


def _by_object(engine: Engine, history: Dataset, rows: int) -> Dataset:
    return engine.mapped(history, partial(object_rows, buckets=bucket_count(rows)), ROWS)
