"""All that concerns one key in one pass: what its reads contradict, and the edges that they tell.

Both follow from the order of the key's versions, which takes longer to find than either. Findings are few, so they
travel with the edges, as one row more.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from checkers.elle.edges import EDGES
from checkers.elle.list_append.dependencies import edges_of
from checkers.elle.list_append.key_findings import findings_of
from checkers.elle.list_append.order import orders
from checkers.findings import FINDINGS
from checkers.kernels.columns import whole

_FOUND = pa.list_(pa.struct(list(FINDINGS)))

OUTCOMES = EDGES.append(pa.field("findings", _FOUND))
"""Edges, and rows that are none but hold FINDINGS: their kind is NO_EDGE, and all else is 0."""

NO_EDGE = -1


def list_outcomes(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys: OUTCOMES."""
    known = orders(rows)
    edges, findings = edges_of(known), findings_of(known)
    carried = pa.Table.from_pylist(
        [dict.fromkeys(EDGES.names, 0) | {"kind": NO_EDGE, "findings": findings.to_pylist()}], schema=OUTCOMES
    )
    return pa.concat_tables([edges.append_column("findings", pa.nulls(edges.num_rows, _FOUND)), carried])


def outcome_edges(outcomes: pa.Table) -> pa.Table:
    """Kernel: EDGES."""
    return outcomes.filter(pc.greater(outcomes["kind"], NO_EDGE)).select(EDGES.names)


def outcome_findings(outcomes: pa.Table) -> pa.Table:
    """Kernel: FINDINGS."""
    found = pc.list_flatten(whole(outcomes["findings"]))
    return pa.Table.from_arrays(found.flatten(), schema=FINDINGS)
