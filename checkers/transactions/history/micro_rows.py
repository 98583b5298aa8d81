"""The micro-operations of all transactions as flat rows: what every other plan on transactions begins with.

Nearly every operation ends within a few rows of its invocation. So each batch of a history pairs what it holds itself,
and only what it cannot pair is shuffled by process. To read a history again costs less than to hold all of these rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.buckets import bucket_count
from checkers.findings import Findings
from checkers.history_batches import history_rows
from checkers.kernels.columns import (
    INFO,
    INVOKE,
    NONE,
    OK,
    TYPES,
    Bool,
    Int8,
    Int32,
    Int64,
    codes,
    integers,
    member,
    whole,
)
from checkers.kernels.hashing import bucket_of, mixed
from checkers.plan import CheckRequest, Dataset, Engine
from checkers.transactions.history.committed import NEVER
from checkers.transactions.history.malformed import MALFORMED, malformed_examples
from checkers.transactions.history.micro_operations import FUNCTIONS, TRANSACTION, R
from checkers.verdict import EXAMPLES
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs

ENDS = ("index", "process", "type", "key")
COLUMNS = (*ENDS, "value")
KEY = pa.dictionary(pa.int32(), pa.string())

NOTHING, SILENT, KEYED = -2, -3, -4
"""`f` of the row of a transaction that has no micro-operations, or of which only reads are known to have been tried; of
an operation without a transaction; of one that has a key of its own, which transactions have not."""

REFUSALS = {
    SILENT: "the operation has no transaction; its value must be [[f key value] …]",
    KEYED: "the operation has a key of its own: transactions name their keys inside",
}

MICRO_ROWS = pa.schema(
    [
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("place", pa.int32()),
        pa.field("f", pa.int8()),
        pa.field("key", KEY),
        pa.field("value", pa.int64()),
        pa.field("values", pa.list_(pa.int64())),
    ]
)
"""Every transaction's rows stand together in one table, in program order, and it has at least one.

`start` is the history index of its invocation, `end` that of its completion, NEVER if there is none; `type` is OK,
FAIL or INFO, how it ended. `place` counts its micro-operations from 0; `f` is a position in FUNCTIONS, -1 for unknown
ones, NOTHING, SILENT or KEYED. `value` is NONE and `values` null where there is none. Of transactions that did not end
with ok, and of those that did without saying what they read, the writes that were tried are here, and no reads.
"""

_LOOSE = MICRO_ROWS.append(pa.field("bucket", pa.int32()))
"""Rows that miss their other end: `start` or `end` is UNSEEN."""

UNSEEN = -1


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """Rows of a history, as the transactions that begin or end there."""

    lists: pa.Array
    """Of micro-operations."""
    counts: Int64
    """Of each list its length."""
    without: Int8
    """`f` of a row without any micro-operation."""
    answers: Bool
    """Whether it says what was read."""
    start: Int64
    end: Int64
    process: Int32
    type: Int8

    def only(self, rows: Int64) -> _Ends:
        columns = {field.name: getattr(self, field.name)[rows] for field in fields(self) if field.name != "lists"}
        return _Ends(lists=self.lists.take(pa.array(rows)), **columns)


def micro_rows(
    request: CheckRequest, engine: Engine, columns: tuple[str, ...] = COLUMNS, across: Dataset | None = None
) -> Dataset:
    """All transactions of clients as MICRO_ROWS; of ENDS alone those of one batch have one row, without any
    micro-operation. `across`: what `rows_across_batches` finds, where it is kept."""
    history = engine.history(request.history, columns)
    across = across or rows_across_batches(request, engine, columns)
    return engine.union(engine.mapped(history, paired_rows, MICRO_ROWS), across)


def rows_across_batches(request: CheckRequest, engine: Engine, columns: tuple[str, ...] = COLUMNS) -> Dataset:
    """MICRO_ROWS of transactions that do not end in the batch in which they begin, which are few. To find them takes as
    long as to find the others, so that who asks for all more than once keeps them."""
    buckets = bucket_count(history_rows(request.history))
    history = engine.history(request.history, columns)
    loose = engine.mapped(history, partial(loose_rows, buckets=buckets), _LOOSE)
    return engine.grouped(loose, ("bucket",), matched_rows, MICRO_ROWS)


def paired_rows(batch: pa.Table) -> pa.Table:
    """Kernel: the transactions that begin and end in a batch."""
    return _rows(batch, loose=False)


def loose_rows(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: the ends of others."""
    rows = _rows(batch, loose=True)
    bucket = bucket_of(mixed(rows["process"].to_numpy()), buckets).astype(np.int32)
    return rows.append_column(_LOOSE.field("bucket"), pa.array(bucket))


def _rows(batch: pa.Table, *, loose: bool) -> pa.Table:
    process = whole(batch["process"]).to_numpy().astype(np.int32)
    kind = codes(batch["type"], TYPES).astype(np.int8)
    index = whole(batch["index"]).to_numpy().astype(np.int64)
    client = process != NEMESIS
    invoked = kind == INVOKE
    mine = np.flatnonzero(client)
    partner = np.full(len(index), NO_PARTNER, dtype=np.int64)
    found = pairs(index[mine], process[mine], invoked[mine])
    partner[mine] = np.where(found == NO_PARTNER, NO_PARTNER, mine[found])
    paired = partner != NO_PARTNER
    other = np.where(paired, partner, 0)

    lists = _lists(batch)
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    keyed = pc.is_valid(whole(batch["key"])).to_numpy(zero_copy_only=False)
    absent = pc.is_null(lists).to_numpy(zero_copy_only=False)
    without = np.where(keyed, KEYED, np.where(absent, SILENT, NOTHING)).astype(np.int8)
    answers = (kind == OK) & (counts > 0)
    # Of an invocation whose completion shows everything nothing is kept.
    silent = ~client | (paired == loose) | (paired & np.where(invoked, answers[other], ~answers))
    start = np.where(invoked, index, np.where(paired, index[other], UNSEEN))
    end = np.where(invoked, np.where(paired, index[other], UNSEEN), index)
    ended = np.where(invoked & paired, kind[other], kind).astype(np.int8)
    ends = _Ends(
        lists=lists, counts=counts, without=without, answers=answers, start=start, end=end, process=process, type=ended
    )
    rows = np.flatnonzero(~silent)
    # Loose ones are few, and all else of the batch is another kernel's.
    return _flat(ends.only(rows), np.arange(len(rows))) if loose else _flat(ends, rows)


def _lists(batch: pa.Table) -> pa.Array:
    if "value" not in batch.column_names:
        return pa.nulls(batch.num_rows, TRANSACTION.field("txn").type)
    lists = member(batch["value"], "txn")
    return lists if pa.types.is_list(lists.type) else pa.nulls(len(lists), TRANSACTION.field("txn").type)


def _flat(ends: _Ends, rows: Int64) -> pa.Table:
    """MICRO_ROWS of these rows."""
    lists, counts, without, answers = ends.lists, ends.counts, ends.without, ends.answers
    parent = np.repeat(np.arange(len(counts)), counts)
    begin = np.cumsum(counts) - counts
    place = (np.arange(len(parent)) - begin[parent]).astype(np.int32)
    parts = lists.flatten()
    f = codes(member(parts, "f"), FUNCTIONS).astype(np.int8)
    chosen = np.zeros(len(counts), dtype=np.bool_)
    chosen[rows] = True
    of_transactions = chosen & (without != KEYED)
    kept = np.flatnonzero(of_transactions[parent] & (answers[parent] | (f != R)))
    present = np.zeros(len(counts), dtype=np.bool_)
    present[parent[kept]] = True
    empty = np.flatnonzero(chosen & ~present)

    of = np.concatenate([parent[kept], empty])
    key = member(parts, "key")
    key = key if pa.types.is_dictionary(key.type) else pc.dictionary_encode(key.cast(pa.string()))
    nothing = len(empty)
    columns = [
        *(pa.array(column[of]) for column in (ends.start, ends.end, ends.process, ends.type)),
        pa.array(np.concatenate([place[kept], np.zeros(nothing, dtype=np.int32)])),
        pa.array(np.concatenate([f[kept], without[empty]])),
        _padded(key.take(pa.array(kept)), nothing),
        pa.array(np.concatenate([integers(member(parts, "value"))[kept], np.full(nothing, NONE)])),
        _padded(member(parts, "values").cast(pa.list_(pa.int64())).take(pa.array(kept)), nothing),
    ]
    return pa.Table.from_arrays(columns, schema=MICRO_ROWS)


def _padded(array: pa.Array, nulls: int) -> pa.Array:
    return pa.concat_arrays([array, pa.nulls(nulls, array.type)]) if nulls else array


def refused(findings: Findings, rows: pa.Table) -> None:
    """Adds those MICRO_ROWS that are no transactions."""
    f, start = rows["f"].to_numpy(), rows["start"].to_numpy()
    for code, reason in REFUSALS.items():
        begun = np.sort(start[f == code])
        findings.add(MALFORMED, len(begun), malformed_examples((int(index), reason) for index in begun[:EXAMPLES]))


def matched_rows(rows: pa.Table) -> pa.Table:
    """Kernel over the loose rows of a bucket of processes: the transactions that they are."""
    start, end, kind = (rows[name].to_numpy() for name in ("start", "end", "type"))
    # One row an operation of the history, to pair them.
    of = np.where(start == UNSEEN, end, start)
    index, first, operation = np.unique(of, return_index=True, return_inverse=True)
    process, begun = rows["process"].to_numpy()[first], start[first] != UNSEEN
    partner = pairs(index, process, begun)
    matched = partner != NO_PARTNER
    other = np.where(matched, partner, 0)
    answers = ~begun & (kind[first] == OK) & (rows["f"].to_numpy()[first] > NOTHING)
    silent = np.where(begun, matched & answers[other], ~answers)
    operations_start = np.where(begun, index, index[other])
    operations_end = np.where(begun, np.where(matched, index[other], NEVER), index)
    ended = np.where(begun, np.where(matched, kind[first][other], INFO), kind[first]).astype(np.int8)
    kept = np.flatnonzero(~silent[operation])
    kept = kept[np.lexsort((rows["place"].to_numpy()[kept], operation[kept]))]
    mine = operation[kept]
    table = rows.select(MICRO_ROWS.names).take(pa.array(kept))
    for name, column in (("start", operations_start), ("end", operations_end), ("type", ended)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, MICRO_ROWS.field(name), pa.array(column[mine]))
    return table
