"""The micro-operations of all transactions as flat rows: every other plan for transactions begins with them.

Nearly every operation ends within a few rows of its invocation. So each batch of a history pairs the rows that it has,
and only the rest is brought together by process. Reading a history again costs less than holding all of these rows.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import Findings
from checkers.api.plan import CheckRequest, Dataset, Engine, Matching
from checkers.buckets import bucket_count
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
    sized_elements,
    whole,
)
from checkers.kernels.hashing import bucket_of, mixed
from checkers.transactions.history.committed import NEVER
from checkers.transactions.history.micro_operations import FUNCTIONS, TRANSACTION, R
from harness.compiled import compiled
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs, pairs_of_clients

ENDS = ("index", "process", "type", "key")
COLUMNS = (*ENDS, "value")
KEY = pa.dictionary(pa.int32(), pa.string())
VALUES = pa.list_(pa.int64())

NOTHING, SILENT, KEYED = -2, -3, -4
"""Values of `f` in special rows. NOTHING: a transaction without micro-operations, or of which only reads are known.
SILENT: an operation without a transaction. KEYED: an operation with a key of its own, which transactions do not
have."""

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
        pa.field("values", VALUES),
    ]
)
"""Rows of transactions. Each has at least one row, and its rows are together in one table, in program order.

`start` is the history index of the invocation, `end` that of the completion, or NEVER; `type` says how the transaction
ended: OK, FAIL or INFO. `place` counts its micro-operations from 0; `f` is a position in FUNCTIONS, -1 for unknown
ones, NOTHING, SILENT or KEYED. `value` is NONE, and `values` null, if there is none. A transaction that did not end
with ok, or that did not report what it read, has rows for the writes that it tried, and none for reads.
"""

_LOOSE = MICRO_ROWS.append(pa.field("bucket", pa.int32()))
"""Rows whose other end is missing: `start` or `end` is UNSEEN."""

UNSEEN = -1


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows of a history, with the transactions that begin or end there."""

    index: Int64
    kind: Int8
    """The position in TYPES."""
    process: Int32
    partner: Int64
    """The row of the other end, or NO_PARTNER."""
    first: Int64
    """Micro-operations of row i are first[i]:first[i + 1] of `parts`."""
    parts: pa.Array
    f: Int8
    """By micro-operation: its position in FUNCTIONS."""
    without: Int8
    """By row: its `f` if it has no micro-operation."""
    answers: Bool
    """By row: whether it says what was read."""

    @classmethod
    def of(cls, batch: pa.Table) -> _Rows:
        index, process = (whole(batch[name]).to_numpy() for name in ("index", "process"))
        index, process = index.astype(np.int64, copy=False), process.astype(np.int32, copy=False)
        kind = codes(batch["type"], TYPES).astype(np.int8)
        lists = _lists(batch)
        sizes, parts = sized_elements(lists)
        keyed = pc.is_valid(whole(batch["key"])).to_numpy(zero_copy_only=False)
        absent = pc.is_null(lists).to_numpy(zero_copy_only=False)
        return cls(
            index=index,
            kind=kind,
            process=process,
            partner=pairs_of_clients(index, process, kind == INVOKE),
            first=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes))),
            parts=parts,
            f=codes(member(parts, "f"), FUNCTIONS).astype(np.int8),
            without=np.where(keyed, KEYED, np.where(absent, SILENT, NOTHING)).astype(np.int8),
            answers=(kind == OK) & (sizes > 0),
        )


def micro_rows(
    request: CheckRequest, engine: Engine, columns: tuple[str, ...] = COLUMNS
) -> AbstractContextManager[Dataset]:
    """All transactions of clients as MICRO_ROWS. With ENDS alone each has one row, without a micro-operation."""
    history, buckets = engine.history(request.history, columns), bucket_count(history_rows(request.history))
    split = partial(split_rows, buckets=buckets)
    matching = Matching(split=split, schema=MICRO_ROWS, open_schema=_LOOSE, keys=("bucket",), kernel=matched_rows)
    return engine.completed(history, matching)


def split_rows(batch: pa.Table, *, buckets: int) -> tuple[pa.Table, pa.Table]:
    """Kernel: the transactions that begin and end in a batch, and the ends of others."""
    rows = _Rows.of(batch)
    loose = _flat(rows, loose=True)
    bucket = bucket_of(mixed(loose["process"].to_numpy()), buckets).astype(np.int32)
    return _flat(rows, loose=False), loose.append_column(_LOOSE.field("bucket"), pa.array(bucket))


class _Standing(NamedTuple):
    """Rows that stand for their transactions."""

    row: Int64
    start: Int64
    end: Int64
    type: Int8
    """The type of each transaction, as in MICRO_ROWS."""


@compiled
def _standing(index: Int64, process: Int32, kind: Int8, partner: Int64, answers: Bool, loose: bool) -> _Standing:
    """The rows that stand for transactions with both ends here or, if `loose`, with one. An invocation is not kept if
    its completion shows everything, nor is a completion that shows nothing."""
    row, ended = np.empty(len(kind), dtype=np.int64), np.empty(len(kind), dtype=np.int8)
    start, end = np.empty(len(kind), dtype=np.int64), np.empty(len(kind), dtype=np.int64)
    count = 0
    for i in range(len(kind)):
        other = partner[i]
        if process[i] == NEMESIS or (other == NO_PARTNER) != loose:
            continue
        if not loose and (answers[other] if kind[i] == INVOKE else not answers[i]):
            continue
        begun, done = (i, other) if kind[i] == INVOKE else (other, i)
        row[count] = i
        start[count] = UNSEEN if begun == NO_PARTNER else index[begun]
        end[count] = UNSEEN if done == NO_PARTNER else index[done]
        ended[count] = kind[i if done == NO_PARTNER else done]
        count += 1
    return _Standing(row[:count].copy(), start[:count].copy(), end[:count].copy(), ended[:count].copy())


@compiled
def _kept(rows: Int64, first: Int64, f: Int8, without: Int8, answers: Bool) -> tuple[Int64, Int64, Int32, Int64]:
    """(micro-operations, their positions in `rows`, their places in their transactions; positions of rows without
    any)."""
    most = 0
    for row in rows:
        most += first[row + 1] - first[row]
    part, of, place = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32)
    empty = np.empty(len(rows), dtype=np.int64)
    count = nothing = 0
    for i in range(len(rows)):
        row, before = rows[i], count
        if without[row] != KEYED:
            for p in range(first[row], first[row + 1]):
                if answers[row] or f[p] != R:
                    part[count], of[count], place[count] = p, i, p - first[row]
                    count += 1
        if count == before:
            empty[nothing] = i
            nothing += 1
    return part[:count].copy(), of[:count].copy(), place[:count].copy(), empty[:nothing].copy()


def _lists(batch: pa.Table) -> pa.Array:
    if "value" not in batch.column_names:
        return pa.nulls(batch.num_rows, TRANSACTION.field("txn").type)
    lists = member(batch["value"], "txn")
    return lists if pa.types.is_list(lists.type) else pa.nulls(len(lists), TRANSACTION.field("txn").type)


def _flat(rows: _Rows, loose: bool) -> pa.Table:
    """MICRO_ROWS of the transactions that have both ends here, or, if `loose`, of those that have one."""
    standing = _standing(rows.index, rows.process, rows.kind, rows.partner, rows.answers, loose)
    part, of, place, empty = _kept(standing.row, rows.first, rows.f, rows.without, rows.answers)
    key = member(rows.parts, "key")
    key = key if pa.types.is_dictionary(key.type) else pc.dictionary_encode(key.cast(pa.string()))
    values = member(rows.parts, "values")
    values = values if values.type == VALUES else values.cast(VALUES)
    nothing, of = len(empty), np.concatenate((of, empty))
    columns = [
        *(pa.array(column[of]) for column in (standing.start, standing.end, rows.process[standing.row], standing.type)),
        pa.array(np.concatenate([place, np.zeros(nothing, dtype=np.int32)])),
        pa.array(np.concatenate([rows.f[part], rows.without[standing.row[empty]]])),
        _padded(key.take(pa.array(part)), nothing),
        pa.array(np.concatenate([integers(member(rows.parts, "value"))[part], np.full(nothing, NONE)])),
        _padded(values.take(pa.array(part)), nothing),
    ]
    return pa.Table.from_arrays(columns, schema=MICRO_ROWS)


def _padded(array: pa.Array, nulls: int) -> pa.Array:
    return pa.concat_arrays([array, pa.nulls(nulls, array.type)]) if nulls else array


def refused(findings: Findings, rows: pa.Table) -> None:
    """Adds a finding for each of the MICRO_ROWS that is not a transaction's."""
    f, start = rows["f"].to_numpy(), rows["start"].to_numpy()
    for code, reason in REFUSALS.items():
        findings.refuse((int(index), reason) for index in np.sort(start[f == code])[:1])


def matched_rows(rows: pa.Table) -> pa.Table:
    """Kernel over the loose rows of a bucket of processes: the transactions that they make up."""
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
