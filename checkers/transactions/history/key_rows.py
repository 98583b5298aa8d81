"""Rows of what transactions do to keys, in buckets of keys: the part that lists and registers have in common.

Findings about transactions can travel with them, so that one pass over transactions produces both.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from checkers.api.findings import FINDINGS

KEY_ROWS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("role", pa.int8()),
        pa.field("type", pa.int8()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("place", pa.int32()),
        pa.field("value", pa.int64()),
    ]
)
"""One row for each micro-operation. `start`, `end`, `process` and `type` are the transaction's; `place` is the place in
the transaction; `role` is one of the workload's own; `value` is what was written or appended, or read of a register."""

ALONG = -1
"""The `role` of a row that holds a finding, which is in its `key`. Its `bucket` is 0."""


def with_findings(rows: pa.Table, findings: pa.Table) -> pa.Table:
    """The rows, which have the columns of KEY_ROWS, and behind them the findings."""
    if not findings.num_rows:
        return rows
    blank = {field.name: 0 for field in rows.schema if pa.types.is_integer(field.type)}
    along = [blank | {"role": ALONG, "key": json.dumps(finding)} for finding in findings.to_pylist()]
    return pa.concat_tables([rows, pa.Table.from_pylist(along, schema=rows.schema)])


def without_findings(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(the rows, FINDINGS)."""
    along = rows["role"].to_numpy() == ALONG
    if not along.any():
        return rows, FINDINGS.empty_table()
    found = [json.loads(text) for text in rows["key"].take(pa.array(np.flatnonzero(along))).to_pylist()]
    return rows.filter(pa.array(~along)).combine_chunks(), pa.Table.from_pylist(found, schema=FINDINGS)
