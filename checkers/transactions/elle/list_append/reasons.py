"""Why there are edges between transactions on lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import NONE
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.list_append.dependencies import dependencies
from checkers.transactions.elle.list_append.order import list_orders
from checkers.transactions.elle.reasons import positions_of, reasons_table, rows_of_wanted_keys


def list_reasons(rows: pa.Table, *, wanted: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys: EDGE_REASONS, at most one for each wanted edge.

    The order of two versions is shown by the longest read, or by nothing if the next version was never read. A WR edge
    is shown by the reader.
    """
    known = list_orders(rows_of_wanted_keys(rows, wanted))
    found = dependencies(known)
    chosen = np.flatnonzero(positions_of(wanted, found.kind, found.source, found.target) >= 0)
    kind = found.kind[chosen]
    key, of_source, of_target = (column[chosen] for column in (found.key, found.source_row, found.target_row))

    value, following, evidence = (np.full(len(chosen), NONE, dtype=np.int64) for _ in range(3))
    wr, rw = kind == Dependency.WR, kind == Dependency.RW
    appends, reads = known.appends, known.reads
    value[~rw] = appends.value[of_source[~rw]]
    saw = known.saw[of_source[rw]]
    value[rw] = np.where(saw >= 0, np.append(appends.value, NONE)[saw], NONE)
    following[~wr] = appends.value[of_target[~wr]]
    evidence[wr] = reads.start[of_target[wr]]
    shown = ~wr
    shown[shown] = known.reader[of_target[shown]] >= 0
    evidence[shown] = reads.start[known.longest[key[shown]]]
    return reasons_table(
        kind=kind,
        source=found.source[chosen],
        target=found.target[chosen],
        key=known.names.take(pa.array(key)),
        value=value,
        next_value=following,
        evidence=evidence,
    )
