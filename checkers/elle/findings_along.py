"""Findings that travel with rows of another kind, so that one pass over transactions makes both."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from checkers.findings import FINDINGS

ALONG = -1
"""`role` of a row that holds a finding, in its `key`. Its `bucket` is 0."""


def with_findings(rows: pa.Table, findings: pa.Table) -> pa.Table:
    """The rows, whose schema has `bucket`, `role` and `key`, and behind them the findings."""
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
