"""Why there is an edge between two transactions: the key, the versions, and the read that shows their order.

There are many edges, and reasons are only wanted for the few in cycles. So kernels that infer edges drop the reasons,
and run again for the keys of these few: then each gives a reason for every edge of its keys.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.plan import Dataset, Engine
from checkers.kernels.columns import NONE, Int8, Int64, run_starts

EDGE_REASONS = pa.schema(
    [
        pa.field("kind", pa.int8()),
        pa.field("source", pa.int64()),
        pa.field("target", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("value", pa.int64()),
        pa.field("next_value", pa.int64()),
        pa.field("evidence", pa.int64()),
    ]
)
"""One reason for an edge of EDGES.

`value` is what the source wrote (WW, WR) or read (RW; null for the initial version); `next_value` what the target wrote
over it (WW, RW; null for WR). `evidence` is the invocation of a transaction whose read shows the order of both; null if
no single read does."""

Edge = tuple[int, int, int]
"""The kind, the source and the target of an edge."""


def wanted_edges(edges: Iterable[Edge]) -> pa.Table:
    """A small table of edges, to hand to kernels: the first three columns of EDGE_REASONS."""
    columns = list(zip(*sorted(set(edges)), strict=True)) or [(), (), ()]
    schema = pa.schema(list(EDGE_REASONS)[:3])
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def positions_of(wanted: pa.Table, kind: Int8, source: Int64, target: Int64) -> Int64:
    """The place of each edge in `wanted`; -1 if it is not there."""
    position = {edge: i for i, edge in enumerate(zip(*(column.to_pylist() for column in wanted.columns), strict=True))}
    result = np.full(len(kind), -1, dtype=np.int64)
    near = np.isin(source, wanted["source"].to_numpy()) & np.isin(target, wanted["target"].to_numpy())
    for i in np.flatnonzero(near).tolist():
        result[i] = position.get((int(kind[i]), int(source[i]), int(target[i])), -1)
    return result


def rows_of_wanted_keys(rows: pa.Table, wanted: pa.Table) -> pa.Table:
    """The rows, with `start` and `key`, of all keys that an end of a wanted edge touches."""
    ends = pa.array(np.concatenate([wanted[name].to_numpy() for name in ("source", "target")]))
    return rows.filter(pc.is_in(rows["key"], pc.unique(rows["key"].filter(pc.is_in(rows["start"], ends)))))


def rows_of_keys(rows: pa.Table, *, keys: frozenset[str]) -> pa.Table:
    """Kernel over rows with `key`: the rows of these keys."""
    return rows.filter(pc.is_in(rows["key"], pa.array(sorted(keys), pa.string())))


def reasons_table(
    *, kind: Int8, source: Int64, target: Int64, key: pa.Array, value: Int64, next_value: Int64, evidence: Int64
) -> pa.Table:
    """The EDGE_REASONS, at most one for each edge. NONE becomes null."""
    nullable = (pa.array(column, mask=column == NONE) for column in (value, next_value, evidence))
    arrays = [pa.array(kind), pa.array(source), pa.array(target), key, *nullable]
    return first_reasons(pa.Table.from_arrays(arrays, schema=EDGE_REASONS))


def first_reasons(reasons: pa.Table) -> pa.Table:
    """Kernel over all reasons of some edges, whose first columns are those of EDGE_REASONS up to the key: for each edge
    the one with the least key, in the order of edges."""
    ordered = reasons.sort_by([(name, "ascending") for name in ("kind", "source", "target", "key")])
    starts = run_starts(*(ordered[name].to_numpy() for name in ("kind", "source", "target")))
    return ordered.take(pa.array(np.flatnonzero(starts)))


def gathered_reasons(engine: Engine, reasons: Dataset, wanted: pa.Table) -> pa.Table:
    """One reason for each wanted edge that has any, in the order of edges."""
    merged = engine.grouped(reasons, ("source",), first_reasons, reasons.schema)
    return first_reasons(engine.gather(merged, wanted.num_rows))
