"""Transactions with both ends: their answers, or what was asked if there is no answer, and how each ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.plan import CheckRequest, Dataset, Engine
from checkers.buckets import bucket_count
from checkers.history_batches import history_rows
from checkers.kernels.columns import INFO, INVOKE, OK, TYPES, Int64, codes, member
from checkers.kernels.hashing import bucket_of, mixed
from checkers.transactions.history.micro_operations import TRANSACTION
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs

COLUMNS = ("index", "time", "process", "type", "f", "key", "value")
TXN = TRANSACTION.field("txn")

NEVER = int(np.iinfo(np.int64).max)

Lists = Callable[[pa.Table], pa.Array]
"""A function from a batch to the list of micro-operations of each row."""


def rows_schema(beside: Sequence[str]) -> pa.Schema:
    return pa.schema(
        [
            pa.field("bucket", pa.int32()),
            pa.field("key", pa.string()),
            pa.field("process", pa.int32()),
            pa.field("type", pa.int8()),
            pa.field("index", pa.int64()),
            pa.field("time", pa.int64()),
            TXN,
            *(pa.field(name, pa.string()) for name in beside),
        ]
    )


def spans_schema(beside: Sequence[str] = ()) -> pa.Schema:
    """One row for each transaction. `type` is how it ended, INFO if there is no completion; then the `end` is NEVER.

    `key` is that of the operation, if transactions are independent of those with other keys. `beside` are texts that
    the completion has.
    """
    return pa.schema(
        [
            pa.field("key", pa.string()),
            pa.field("process", pa.int32()),
            pa.field("type", pa.int8()),
            pa.field("start", pa.int64()),
            pa.field("end", pa.int64()),
            pa.field("start_ns", pa.int64()),
            pa.field("end_ns", pa.int64()),
            TXN,
            *(pa.field(name, pa.string()) for name in beside),
        ]
    )


def lists_of(batch: pa.Table) -> pa.Array:
    """Of a history whose values are TRANSACTION."""
    return member(batch["value"], TXN.name)


def transactions(
    request: CheckRequest,
    engine: Engine,
    *,
    lists: Lists = lists_of,
    beside: Sequence[str] = (),
    begun: Int64 | None = None,
) -> Dataset:
    """All transactions of clients in a history, as `spans_schema` says; `beside` are fields of the values. `begun`: the
    indices of the invocations of those that are wanted."""
    buckets = bucket_count(history_rows(request.history))
    history = engine.history(request.history, COLUMNS)
    kernel = partial(transaction_rows, lists=lists, beside=tuple(beside), buckets=buckets, begun=begun)
    rows = engine.mapped(history, kernel, rows_schema(beside))
    return engine.grouped(rows, ("bucket",), partial(transaction_spans, beside=tuple(beside)), spans_schema(beside))


def transaction_rows(
    batch: pa.Table, *, lists: Lists, beside: Sequence[str], buckets: int, begun: Int64 | None = None
) -> pa.Table:
    """Kernel: the rows of a batch, in buckets of processes."""
    batch = batch.filter(pc.not_equal(batch["process"], NEMESIS))
    if begun is not None:
        batch = _ends_of(batch, begun)
    process = batch["process"].to_numpy().astype(np.int32)
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(process), buckets)),
            batch["key"].combine_chunks().cast(pa.string()),
            pa.array(process),
            pa.array(codes(batch["type"], TYPES).astype(np.int8)),
            batch["index"].combine_chunks().cast(pa.int64()),
            batch["time"].combine_chunks().cast(pa.int64()),
            lists(batch).cast(TXN.type),
            *(member(batch["value"], name).cast(pa.string()) for name in beside),
        ],
        schema=rows_schema(beside),
    )


def _ends_of(batch: pa.Table, begun: Int64) -> pa.Table:
    """The rows of transactions that began at these indices, and completions of operations that began in other batches,
    which may be theirs. If a process still waits for the completion of a wanted one, its next row here is that."""
    invoked = codes(batch["type"], TYPES) == INVOKE
    index, process = (batch[name].to_numpy() for name in ("index", "process"))
    partner = pairs(index, process, invoked)
    wanted = invoked & pc.is_in(pa.array(index), pa.array(begun)).to_numpy(zero_copy_only=False)
    paired = partner != NO_PARTNER
    return batch.filter(pa.array(wanted | np.where(paired, wanted[partner], ~invoked)))


def transaction_spans(rows: pa.Table, *, beside: Sequence[str]) -> pa.Table:
    """Kernel over all rows of a bucket of processes."""
    index, process, time, kind = (rows[name].to_numpy() for name in ("index", "process", "time", "type"))
    invoked = kind == INVOKE
    partner = pairs(index, process, invoked)
    begun = np.flatnonzero(invoked)
    ended = partner[begun]
    seen = ended != NO_PARTNER
    outcome = np.where(seen, kind[ended], INFO)
    is_over = outcome != INFO
    answered = np.where(seen & (kind[ended] == OK) & pc.is_valid(rows["txn"]).to_numpy()[ended], ended, begun)
    return pa.Table.from_arrays(
        [
            rows["key"].combine_chunks().take(pa.array(begun)),
            pa.array(process[begun]),
            pa.array(outcome.astype(np.int8)),
            pa.array(index[begun]),
            pa.array(np.where(is_over, index[ended], NEVER)),
            pa.array(time[begun]),
            pa.array(np.where(is_over, time[ended], NEVER)),
            rows["txn"].combine_chunks().take(pa.array(answered)),
            *(rows[name].combine_chunks().take(pa.array(np.where(seen, ended, begun))) for name in beside),
        ],
        schema=spans_schema(beside),
    )
