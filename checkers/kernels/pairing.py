"""Completions with what they complete, in tables of rows with `index`, `process` and `type`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import INVOKE, Int64, run_starts
from harness.record.history import NO_PARTNER, pairs


def operations(rows: pa.Table) -> tuple[Int64, Int64]:
    """(position of each row that completes, of the one that began it); one without a completion is its beginning."""
    index, process, kind = (rows[name].to_numpy() for name in ("index", "process", "type"))
    # A completion may have many rows, which mostly lie side by side; the first of each operation is what is paired.
    starts = run_starts(index)
    runs = np.flatnonzero(starts)
    order = np.argsort(index[runs], kind="stable")
    firsts = run_starts(index[runs[order]])
    heads = runs[order[firsts]]
    invoked = kind[heads] == INVOKE
    partner = pairs(index[heads], process[heads], invoked)
    begun_by = heads[partner]
    head_of_run = np.empty(len(runs), dtype=np.int64)
    head_of_run[order] = np.cumsum(firsts) - 1

    completed = np.flatnonzero(kind != INVOKE)
    begun = begun_by[head_of_run[(np.cumsum(starts) - 1)[completed]]]
    still_open = heads[invoked & (partner == NO_PARTNER)]
    return np.concatenate((completed, still_open)), np.concatenate((begun, still_open))
