"""Dependencies between transactions as rows, from the kernels that infer them to those that look for cycles.

A transaction is named by the history index of its invocation. Its position is a place in a total order that realtime
and process order never contradict: the index of its completion with ok, else of its invocation. An edge that runs
against positions is a back edge; every cycle has one.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import OK, Int8, Int64


class Dependency(IntEnum):
    """The kind of an edge from T to U. WW: U overwrote what T wrote. WR: U read what T wrote. RW: U overwrote what T
    read. PROCESS: U came later in T's process. REALTIME: U began after T had ended."""

    WW = 0
    WR = 1
    RW = 2
    PROCESS = 3
    REALTIME = 4


EDGES = pa.schema(
    [
        pa.field("kind", pa.int8()),
        pa.field("source", pa.int64()),
        pa.field("source_position", pa.int64()),
        pa.field("target", pa.int64()),
        pa.field("target_position", pa.int64()),
    ]
)
"""Edges inferred from keys: WW, WR and RW, without self-loops, each at most once for each key. Process and realtime
edges follow from the transactions and are not stored."""

LINKS = pa.schema([EDGES.field(name) for name in ("kind", "source_position", "target_position")])
"""The columns of EDGES that a search for cycles looks at."""

NODES = pa.schema(
    [
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
    ]
)
"""Transactions that completed with ok or are indefinite; `end` is NEVER for the latter."""


def positions(start: Int64, end: Int64, kind: Int8) -> Int64:
    """The position of each transaction. `kind` is a position in columns.TYPES, as in NODES."""
    return np.where(kind == OK, end, start)
