"""The linearizability checker for any model: each object behaves as if its operations happened one by one.

It claims that the operations on each key can be put in an order in which the model allows every one of them, and
whatever ended before something else began comes before it. Objects are independent: where each of them is
linearizable, all of them together are.

It takes histories whose functions are those of the model, with the object as key. The value is a struct: a member
`json` holds any value as JSON text; else `expected` and `value` are the pair of a compare-and-set, and otherwise
`value` is the value. What is indefinite, or never completed, may have taken effect at any time after its invocation,
or never.

What breaks it: `nonlinearizable`, one anomaly a key, with the shortest window found that cannot be ordered, and for
each longest valid order what would have had to be told. An object that could not be decided within bounds makes the
result UNKNOWN, with how far it came.

It does not establish anything about operations on several objects at once (but a multi-register is one object).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.buckets import bucket_count
from checkers.findings import FINDINGS, Example, Findings, gathered_findings, judged
from checkers.history_batches import history_rows
from checkers.kernels.columns import Int64
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.linearizable.decision import (
    NOT_LINEARIZABLE,
    UNDECIDED,
    Decision,
    Problem,
    decide,
    decide_with_orders,
)
from checkers.linearizable.kernel import READS
from checkers.linearizable.models import ANYTHING, UNTOLD, Answer, Call, Model, frozen
from checkers.linearizable.operations import NEVER
from checkers.linearizable.parts import Part, decide_parts, order_of_parts, parts
from checkers.linearizable.problem import Calls, Row, calls_of
from checkers.plan import CheckRequest, Dataset, Engine
from checkers.verdict import EXAMPLES, CheckerResult
from harness.history import MalformedHistory

CONFIGURATIONS = 5_000_000
"""At most so many are explored for one object: some seconds. The option `max_configurations` replaces it."""

NONLINEARIZABLE = "nonlinearizable"
UNDECIDED_OBJECT = "undecided"
OBJECTS = "objects"
MALFORMED = "malformed"

COLUMNS = ("index", "process", "type", "f", "key", "value", "error")

ROWS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.string()),
        pa.field("f", pa.string()),
        pa.field("value", pa.string()),
        pa.field("error", pa.string()),
    ]
)
"""Rows of a history about objects; the value as JSON."""

ORDERS = pa.schema([pa.field("key", pa.string()), pa.field("order", pa.list_(pa.int64()))])
CERTIFIED_KEYS = 1_000_000
"""At most so many objects are certified at once."""

TRIED = 64
"""At most so many reads are taken out of a window to make it smaller."""
TRIED_CONFIGURATIONS = 20_000
SHOWN_STATES = 5
SHOWN_OPERATIONS = 20


@dataclass(frozen=True)
class Linearizable:
    """Judges a history of objects of one model, object by object."""

    model: Model

    @property
    def name(self) -> str:
        return "linearizable"

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        kernel = partial(object_findings, model=self.model, limit=_limit(request))
        found = dict(gathered_findings(engine, engine.grouped(_rows(request, engine), ("bucket",), kernel, FINDINGS)))
        malformed = found.pop(MALFORMED, None)
        if malformed is not None:
            first = malformed.examples[0]
            raise MalformedHistory(first.operations[0], first.because)
        objects = found.pop(OBJECTS, None)
        undecided = found.pop(UNDECIDED_OBJECT, None)
        reasons = [anomaly.because for anomaly in undecided.examples] if undecided else []
        if undecided and undecided.count > len(reasons):
            reasons.append(f"{undecided.count - len(reasons)} more objects are undecided")
        return judged(
            found,
            legal=request.legal,
            undecided=reasons,
            statistics={"objects": objects.count if objects else 0},
        )

    def certify(self, request: CheckRequest, engine: Engine, path: Path) -> int:
        """Write an order for each object that has one, a JSON object {"key", "order"} a line; returns how many.

        The order names operations by the indices of their invocations. `replay` checks it against the history.
        """
        kernel = partial(object_orders, model=self.model, limit=_limit(request))
        orders = engine.gather(
            engine.grouped(_rows(request, engine), ("bucket",), kernel, ORDERS), CERTIFIED_KEYS
        ).sort_by("key")
        with path.open("w") as file:
            for key, order in zip(orders["key"].to_pylist(), orders["order"].to_pylist(), strict=True):
                file.write(json.dumps({"key": key, "order": order}) + "\n")
        return int(orders.num_rows)


def _limit(request: CheckRequest) -> int:
    return int(request.options.get("max_configurations", CONFIGURATIONS))


def _rows(request: CheckRequest, engine: Engine) -> Dataset:
    buckets = bucket_count(history_rows(request.history))
    return engine.mapped(engine.history(request.history, COLUMNS), partial(object_rows, buckets=buckets), ROWS)


def object_rows(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: what of a batch clients did."""
    batch = batch.take(pa.array(np.flatnonzero(batch["process"].to_numpy() >= 0)))
    key = batch["key"].combine_chunks()
    told = zip(batch["f"].to_pylist(), batch["value"].to_pylist(), strict=True)
    values = [json.dumps(_value(f, value), sort_keys=True) for f, value in told]
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed_column(key), buckets)),
            key.cast(pa.string()),
            batch["index"].cast(pa.int64()).combine_chunks(),
            batch["process"].cast(pa.int32()).combine_chunks(),
            batch["type"].cast(pa.string()).combine_chunks(),
            batch["f"].cast(pa.string()).combine_chunks(),
            pa.array(values, pa.string()),
            batch["error"].cast(pa.string()).combine_chunks(),
        ],
        schema=ROWS,
    )


def _value(f: str, struct: dict[str, Any] | None) -> Any:
    if struct is None:
        return None
    if "json" in struct:
        return json.loads(struct["json"]) if struct["json"] is not None else None
    if f == "cas" and "expected" in struct:
        return [struct["expected"], struct.get("value")]
    return struct.get("value")


def _objects(rows: pa.Table) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each object, in order, object by object in the order of keys."""
    table = rows.sort_by([("key", "ascending"), ("index", "ascending")])
    by_key: dict[str, list[Row]] = {}
    decoded: dict[str, Any] = {}
    columns = (table[name].to_pylist() for name in ("key", "process", "type", "f", "value", "error", "index"))
    for key, process, kind, f, text, error, index in zip(*columns, strict=True):
        if text not in decoded:
            decoded[text] = frozen(json.loads(text))
        by_key.setdefault(key or "", []).append(Row(process, kind, f, decoded[text], error, index))
    yield from sorted(by_key.items())


def object_orders(rows: pa.Table, *, model: Model, limit: int) -> pa.Table:
    """Kernel over all rows of a bucket of objects: an order for each that has one within the limit."""
    keys, orders = [], []
    for key, own in _objects(rows):
        order = order_of_parts(parts(model, calls_of(model, own)), limit=limit)
        if order is not None:
            keys.append(key)
            orders.append(order)
    return pa.table({"key": keys, "order": orders}, schema=ORDERS)


def object_findings(rows: pa.Table, *, model: Model, limit: int) -> pa.Table:
    """Kernel over all rows of a bucket of objects."""
    found: dict[str, list[Example]] = {NONLINEARIZABLE: [], UNDECIDED_OBJECT: [], MALFORMED: []}
    count = 0
    for key, own in _objects(rows):
        count += 1
        wrong = next((row for row in own if row.f not in model.functions), None)
        if wrong is not None:
            because = f"{model.name} has no {wrong.f!r}, only {', '.join(model.functions)}"
            found[MALFORMED].append(Example(key=key, operations=(wrong.at,), because=because))
            continue
        try:
            calls = calls_of(model, own)
            part, decision = decide_parts(parts(model, calls), limit=limit)
        except (TypeError, ValueError) as error:
            because = f"object {key!r} has a value that means nothing to model {model.name}: {error}"
            found[MALFORMED].append(Example(key=key, operations=(own[0].at,), because=because))
            continue
        if decision.outcome == NOT_LINEARIZABLE:
            found[NONLINEARIZABLE].append(_broken(key, model, part, decision, limit))
        elif decision.outcome == UNDECIDED:
            found[UNDECIDED_OBJECT].append(_given_up(key, part.calls, decision))
    findings = Findings()
    findings.add(OBJECTS, count, [])
    for name, examples in found.items():
        chosen = sorted(examples, key=lambda example: (example.operations, example.key))[:EXAMPLES]
        findings.add(name, len(examples), chosen)
    return findings.table()


@dataclass(frozen=True, kw_only=True)
class Window:
    """Operations that cannot be ordered, whatever state the object was in when they began."""

    numbers: Int64
    stuck: int
    """The one that fits nowhere behind the others."""
    before: tuple[Any, ...]
    """The states in which it can have been."""


def window(problem: Problem, decision: Decision, limit: int) -> Window:
    """The shortest one found: from when everything had completed, to the completion that fits nowhere, without
    reads that add nothing to it."""
    stuck = decision.stuck_at
    begun = problem.start < problem.end[stuck]
    numbers = np.flatnonzero(begun & (problem.start >= decision.quiet_since))
    earlier = np.flatnonzero(problem.start < decision.quiet_since)
    before: tuple[Any, ...] = (problem.initial,)
    if len(earlier):
        before = decide(problem.part(earlier, problem.initial), limit=limit).possible
    reads = (problem.does[problem.kind[numbers]] == READS) & (numbers != stuck)
    for number in numbers[reads][:TRIED].tolist():
        fewer = numbers[numbers != number]
        if _unordered(problem, fewer, before):
            numbers = fewer
    return Window(numbers=numbers, stuck=stuck, before=before)


def _unordered(problem: Problem, numbers: Int64, before: tuple[Any, ...]) -> bool:
    return all(
        decide(problem.part(numbers, state), limit=TRIED_CONFIGURATIONS).outcome == NOT_LINEARIZABLE for state in before
    )


def _broken(key: str, model: Model, part: Part, decision: Decision, limit: int) -> Example:
    """What could not be ordered, and what would have had to be told."""
    calls, problem = part.calls, part.problem
    found = window(problem, decision, limit)
    call = calls.calls[found.stuck]
    prefixes = []
    for state in found.before[:SHOWN_STATES]:
        tried = decide_with_orders(problem.part(found.numbers, state), limit=limit)
        for after, order in list(zip(tried.possible, tried.orders, strict=True))[:SHOWN_STATES]:
            stuck = calls.calls[int(found.numbers[tried.stuck_at])]
            prefixes.append(
                {
                    "order": [int(calls.start[found.numbers[number]]) for number in order[-SHOWN_OPERATIONS:]],
                    "state": shown(after),
                    "stuck": describe(stuck),
                    "would_have_told": [shown(told) for told in tellable(model, after, stuck)],
                }
            )
    states = " or ".join(sorted({shown(state) for state in decision.possible})[:SHOWN_STATES])
    return Example(
        key=key,
        operations=_indices(calls, found.numbers),
        because=f"{key}: {describe(call)} (operation {calls.start[found.stuck]}, completed by "
        f"{calls.end[found.stuck]}) fits nowhere: with all that had completed before, the state was {states}, and "
        "nothing that was open meanwhile explains the difference",
        details={"longest_prefixes": prefixes},
    )


def tellable(model: Model, state: Any, call: Call) -> list[Any]:
    """What the call could have told in this state."""
    untold = replace(call, result=UNTOLD)
    return [told for _, told in model.apply(state, untold) if told is not ANYTHING]


def _indices(calls: Calls, numbers: Int64) -> tuple[int, ...]:
    indices = {*calls.start[numbers].tolist(), *calls.end[numbers].tolist()}
    return tuple(sorted(indices - {NEVER}))


def _given_up(key: str, calls: Calls, decision: Decision) -> Example:
    stuck = decision.stuck_at
    done = int((calls.start < calls.start[stuck]).sum()) if stuck >= 0 else 0
    return Example(
        key=key,
        operations=_indices(calls, np.array([stuck] if stuck >= 0 else [], dtype=np.int64)),
        because=f"{key} is undecided after {done} of its {len(calls.calls)} operations: {decision.reason}",
    )


def describe(call: Call) -> str:
    argument = "" if call.argument is None else f" {shown(call.argument)}"
    result = (
        "" if isinstance(call.result, Answer) or call.result == call.argument else f" that told {shown(call.result)}"
    )
    failed = " that failed" if call.result is Answer.FAILED else ""
    return f"{call.f}{argument}{result}{failed}"


def shown(value: Any) -> str:
    """As JSON, cut where it is long; sets in the order of their JSON."""
    if isinstance(value, frozenset):
        text = f"{{{', '.join(sorted(shown(item) for item in value))}}}"
    else:
        text = json.dumps(value, default=str)
    return text if len(text) <= 200 else f"{text[:200]}…"
