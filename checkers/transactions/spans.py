"""Transactions with both ends: what was asked where nothing was answered, and how each ended."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.buckets import bucket_count
from checkers.history_batches import history_rows
from checkers.kernels.columns import INFO, INVOKE, OK, TYPES, codes, member
from checkers.kernels.hashing import bucket_of, mixed
from checkers.plan import CheckRequest, Dataset, Engine
from checkers.transactions.micro_operations import TRANSACTION
from harness.history import NO_PARTNER, pairs
from harness.operation import NEMESIS

COLUMNS = ("index", "time", "process", "type", "key", "value")
TXN = TRANSACTION.field("txn")

ROWS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("index", pa.int64()),
        pa.field("time", pa.int64()),
        TXN,
    ]
)
SPANS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("start_ns", pa.int64()),
        pa.field("end_ns", pa.int64()),
        TXN,
    ]
)
"""One row a transaction; `type` is how it ended, INFO with `end` NEVER if nobody saw that. `key` is that of the
operation, of transactions that are independent of those with other keys."""

NEVER = int(np.iinfo(np.int64).max)


def transactions(request: CheckRequest, engine: Engine) -> Dataset:
    """All transactions of clients in a history, as SPANS."""
    buckets = bucket_count(history_rows(request.history))
    history = engine.history(request.history, COLUMNS)
    rows = engine.mapped(history, partial(transaction_rows, buckets=buckets), ROWS)
    return engine.grouped(rows, ("bucket",), transaction_spans, SPANS)


def transaction_rows(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: the rows of a batch, in buckets of processes."""
    batch = batch.filter(pc.not_equal(batch["process"], NEMESIS))
    process = batch["process"].to_numpy().astype(np.int32)
    txn = member(batch["value"], TXN.name)
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(process), buckets)),
            batch["key"].combine_chunks().cast(pa.string()),
            pa.array(process),
            pa.array(codes(batch["type"], TYPES).astype(np.int8)),
            batch["index"].combine_chunks().cast(pa.int64()),
            batch["time"].combine_chunks().cast(pa.int64()),
            txn if txn.type == TXN.type else txn.cast(TXN.type),
        ],
        schema=ROWS,
    )


def transaction_spans(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of processes."""
    index, process, time, kind = (rows[name].to_numpy() for name in ("index", "process", "time", "type"))
    invoked = kind == INVOKE
    partner = pairs(index, process, invoked)
    begun = np.flatnonzero(invoked)
    ended = partner[begun]
    seen = ended != NO_PARTNER
    told = np.where(seen & (kind[ended] == OK) & pc.is_valid(rows["txn"]).to_numpy()[ended], ended, begun)
    return pa.Table.from_arrays(
        [
            rows["key"].combine_chunks().take(pa.array(begun)),
            pa.array(process[begun]),
            pa.array(np.where(seen, kind[ended], INFO).astype(np.int8)),
            pa.array(index[begun]),
            pa.array(np.where(seen, index[ended], NEVER)),
            pa.array(time[begun]),
            pa.array(np.where(seen, time[ended], NEVER)),
            rows["txn"].combine_chunks().take(pa.array(told)),
        ],
        schema=SPANS,
    )
