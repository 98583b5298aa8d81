"""Failed operations that would have given an object a value that it was seen to have, had they happened.

If nothing that may have happened explains an answer, users ask next whether an operation tried to and failed. So such
operations are looked for in these cases only: by one more pass over the history, for the few objects that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.anomaly import Anomaly
from checkers.api.plan import Dataset, Engine
from checkers.api.verdict import AnomalySummary
from checkers.kernels.columns import FAIL, INVOKE
from checkers.linearizable.evidence.surroundings import SHOWN_CANDIDATES
from checkers.linearizable.history.rows import object_rows
from checkers.linearizable.model import Call, describe
from checkers.linearizable.values import frozen
from harness.record.history import NO_PARTNER, pairs

ATTEMPTS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("sought", pa.string()),
        pa.field("operation", pa.int64()),
        pa.field("completed", pa.int64()),
        pa.field("f", pa.string()),
        pa.field("value", pa.string()),
    ]
)
GATHERED = 1_000_000
"""The most attempts that are gathered; a batch has at most SHOWN_CANDIDATES for each value that is sought."""

Sought = tuple[str, str]
"""A key, and the value as JSON."""


def with_failed_attempts(engine: Engine, history: Dataset, found: Mapping[str, AnomalySummary]) -> dict[str, Any]:
    """The same anomalies, in which answers that nothing explains name the failed operations that would have."""
    every = (_sought(one) for summary in found.values() for one in summary.examples)
    sought = tuple(sorted({one for one in every if one is not None}))
    if not sought:
        return dict(found)
    attempts = engine.gather(engine.mapped(history, partial(failed_attempts, sought=sought), ATTEMPTS), GATHERED)
    by_value: dict[Sought, list[dict[str, Any]]] = {}
    for row in attempts.sort_by("operation").to_pylist():
        by_value.setdefault((row["key"], row["sought"]), []).append(_described(row))
    return {
        name: replace(summary, examples=tuple(_explained(one, by_value) for one in summary.examples))
        for name, summary in found.items()
    }


def failed_attempts(batch: pa.Table, *, sought: tuple[Sought, ...]) -> pa.Table:
    """Kernel: failed operations of a batch that put one of these values, the first few of each."""
    rows = object_rows(batch, buckets=1)
    kind = rows["type"].to_numpy()
    partner = pairs(rows["index"].to_numpy(), rows["process"].to_numpy(), kind == INVOKE)
    # The invocation has the argument; a completion with fail may have a reason in its place.
    asked = pa.array(np.where((kind == FAIL) & (partner != NO_PARTNER), partner, np.arange(len(kind))))
    text = pc.coalesce(rows["number"].cast(pa.string()), rows["text"]).take(asked)
    keys = pc.fill_null(rows["key"], "")
    tables = [ATTEMPTS.empty_table()]
    for key, value in sought:
        swaps_in = pc.and_(pc.equal(rows["f"], "cas"), pc.ends_with(text, f", {value}]"))
        puts = pc.or_(pc.equal(text, value), swaps_in)
        mine = pc.fill_null(pc.and_(pc.equal(keys, key), puts), False).to_numpy(zero_copy_only=False)
        failed = np.flatnonzero(mine & (kind == FAIL))[:SHOWN_CANDIDATES]
        begun = np.where(partner[failed] == NO_PARTNER, failed, partner[failed])
        at = pa.array(failed)
        columns = [
            pa.array([key] * len(failed), pa.string()),
            pa.array([value] * len(failed), pa.string()),
            rows["index"].take(pa.array(begun)),
            rows["index"].take(at),
            rows["f"].take(at),
            text.take(at),
        ]
        tables.append(pa.table(columns, schema=ATTEMPTS))
    return pa.concat_tables(tables).combine_chunks()


def _sought(anomaly: Anomaly) -> Sought | None:
    candidates = anomaly.details.get("candidates")
    if not candidates or candidates["count"] or candidates["sought"] is None:
        return None
    return anomaly.key or "", candidates["sought"]


def _described(row: Mapping[str, Any]) -> dict[str, Any]:
    what = describe(
        Call(f=row["f"], argument=frozen(json.loads(row["value"])), result=frozen(json.loads(row["value"])))
    )
    why_not = "it failed, so it certainly did not happen"
    return {"operation": row["operation"], "completed": row["completed"], "what": what, "why_not": why_not}


def _explained(anomaly: Anomaly, attempts: Mapping[Sought, list[dict[str, Any]]]) -> Anomaly:
    sought = _sought(anomaly)
    found = attempts.get(sought, []) if sought is not None else []
    candidates = {
        **(anomaly.details.get("candidates") or {}),
        "count": len(found),
        "operations": found[:SHOWN_CANDIDATES],
    }
    if not found:
        return anomaly
    details = {**anomaly.details, "candidates": candidates}
    return replace(anomaly, because=f"{anomaly.because}; {_in_words(found)}", details=details)


def _in_words(found: list[dict[str, Any]]) -> str:
    first = found[0]
    more = f", as did {len(found) - 1} more like it," if len(found) > 1 else ""
    return (
        f"{first['what']} (operation {first['operation']}) failed{more} and so did not happen: "
        "if it only timed out, it may have happened, and belongs under info"
    )
