"""All that concerns one key, in one pass: contradictions of its reads, and the edges that follow from them.

Both follow from the order of the key's versions, which takes longer to find than either.
"""

from __future__ import annotations

import pyarrow as pa

from checkers.transactions.elle.list_append.dependencies import edges_of
from checkers.transactions.elle.list_append.key_findings import findings_of
from checkers.transactions.elle.list_append.order import list_orders
from checkers.transactions.elle.outcomes import outcome
from checkers.transactions.history.key_rows import without_findings


def list_outcomes(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys, and over findings that came with them: BUNDLES."""
    rows, along = without_findings(rows)
    known = list_orders(rows)
    return outcome(findings=pa.concat_tables([along, findings_of(known)]), edges=edges_of(known))
