"""External operations of transactions as rows, and the `Committed` that they make up.

An operation is external if it concerns other transactions: a read of what another transaction (or the initial one)
wrote, or the last write of a key. The rows of a key are made where all operations on it are together. Which indefinite
transactions happened is only known where all keys are together again, so it is decided here.

Transactions without external operations have no rows. Session and realtime order lose nothing by that: what comes
before such a transaction in one of these orders also comes before what comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from checkers.kernels.columns import Bool, Int32, Int64, run_starts
from checkers.kernels.packing import joined_column
from checkers.transactions.history.committed import INITIAL, NEVER, NO_SESSION, WRITES, Committed
from harness.compiled import compiled

RESOLVED = pa.schema(
    [
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("place", pa.int32()),
        pa.field("key", pa.int64()),
        pa.field("read_from", pa.int64()),
    ]
)
"""One row for each external operation. The transaction: its `start`, its `end` (NEVER if indefinite), its process and
how it ended (OK or INFO of columns.TYPES). The operation: `place`, ascending in program order; `key`, a number that no
other key has; `read_from`, the start of the transaction that wrote what this read shows, INITIAL_VERSION or IS_WRITE.
An indefinite transaction has only its writes here, an aborted one nothing.

A row with `place` KNOWN says instead that the last version of the key by `read_from` precedes that by `start`, and that
both transactions happened. With `place` KNOWN_IF_BOTH it says that the one precedes the other if both happened."""

TOGETHER = "resolved"
"""The name of these rows in BUNDLES, on their way to where those of a whole history are together."""

INITIAL_VERSION = -1
IS_WRITE = -2

KNOWN = -1
KNOWN_IF_BOTH = -2

SPARSE = 8
"""The average distance of numbers above which they are looked up by bisection, not in a table."""


def committed(parts: Sequence[pa.Table]) -> tuple[Committed, Int64]:
    """(the transactions of RESOLVED rows, the number of each of their keys in these rows). The rows may be in any
    order, packed or not; they have the writes of all transactions that are read from.

    Transactions are numbered by `start`, sessions by process and keys by `key`, from 0 and without gaps; keys without
    operations keep their numbers. Cost: linear if starts and keys are not sparse. Columns are unpacked one at a time,
    when they are needed: besides the parts and the result this takes some 30 bytes a row.
    """
    column = partial(_column, parts)
    begun, of_row = _distinct_numbered(column("start"))
    place = column("place")
    source = _sources(column("read_from"), begun, place)
    one_row = _one_row(of_row, len(begun))
    end = column("end")[one_row]
    happened = _happened(of_row, source, end != NEVER, place)
    transaction = INITIAL + np.cumsum(happened, dtype=np.int32)
    _, session = _distinct_numbered(column("process")[one_row[happened]].astype(np.int64))

    keys, key = _distinct_numbered(column("key"))
    known = np.flatnonzero(place < 0)
    known = known[happened[of_row[known]] & (happened[source[known]] | (source[known] == INITIAL_VERSION))]
    before = np.where(source[known] == INITIAL_VERSION, INITIAL, transaction[source[known]])
    order_of_versions = _distinct_rows(key[known], before, transaction[of_row[known]])

    first, row = _laid_out(of_row, happened, transaction, place)
    return Committed(
        start=np.append(np.int64(-1), begun[happened]),
        end=np.append(np.int64(-1), end[happened]),
        session=np.append(np.int32(NO_SESSION), session),
        first=first,
        key=key[row],
        writer=_writers(row, source, transaction),
        version_edges=order_of_versions,
    ), keys


def _column(parts: Sequence[pa.Table], name: str) -> npt.NDArray[Any]:
    return np.asarray(joined_column(parts, RESOLVED.field(name)))


def _distinct_numbered(values: Int64) -> tuple[Int64, Int32]:
    """(the distinct values, ascending; the position of each value among them)."""
    distinct = _distinct(values)
    return distinct, _numbered(values, distinct)


def _distinct_rows(*columns: Int32) -> Int32:
    order = np.lexsort(columns[::-1])
    table = np.stack([column[order] for column in columns], axis=1).astype(np.int32)
    return table[run_starts(*table.T)]


def _distinct(values: Int64) -> Int64:
    """The distinct values in ascending order."""
    if not len(values):
        return values
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest >= SPARSE * len(values):
        return np.unique(values)
    return lowest + np.flatnonzero(_present(values, lowest, highest - lowest + 1))


def _numbered(values: Int64, among: Int64) -> Int32:
    """The position of each value among these distinct ascending ones; for other values any number."""
    if not len(among):
        return np.zeros(len(values), dtype=np.int32)
    lowest, highest = int(among[0]), int(among[-1])
    if highest - lowest >= SPARSE * max(len(values), len(among)):
        return np.minimum(np.searchsorted(among, values), len(among) - 1).astype(np.int32)
    return _looked_up(values, among, lowest, highest - lowest + 1)


@compiled
def _present(values: Int64, lowest: int, span: int) -> Bool:
    present = np.zeros(span, dtype=np.bool_)
    for i in range(len(values)):
        present[values[i] - lowest] = True
    return present


@compiled
def _looked_up(values: Int64, among: Int64, lowest: int, span: int) -> Int32:
    position = np.zeros(span, dtype=np.int32)
    for i in range(len(among)):
        position[among[i] - lowest] = i
    result = np.zeros(len(values), dtype=np.int32)
    for i in range(len(values)):
        if 0 <= values[i] - lowest < span:
            result[i] = position[values[i] - lowest]
    return result


def _sources(read_from: Int64, begun: Int64, place: Int32) -> Int32:
    """The writer of what each row shows, as a position in `begun`; INITIAL_VERSION and IS_WRITE stay as they are."""
    source = _numbered(read_from, begun)
    _mark_sources(source, read_from, begun, place)
    return source


@compiled
def _mark_sources(source: Int32, read_from: Int64, begun: Int64, place: Int32) -> None:
    for i in range(len(source)):
        if read_from[i] < 0:
            source[i] = read_from[i]
        elif place[i] != KNOWN_IF_BOTH:
            assert begun[source[i]] == read_from[i], "the writer of what was read has no rows"


@compiled
def _one_row(of_row: Int32, transactions: int) -> Int32:
    """One row of each transaction."""
    result = np.empty(transactions, dtype=np.int32)
    for i in range(len(of_row)):
        result[of_row[i]] = i
    return result


@compiled
def _happened(of_row: Int32, source: Int32, definite: Bool, place: Int32) -> Bool:
    """By transaction: whether it completed with ok, or another one read what it wrote."""
    happened = definite.copy()
    for i in range(len(of_row)):
        if place[i] == KNOWN:
            happened[of_row[i]] = True
        if source[i] >= 0 and place[i] != KNOWN_IF_BOTH:
            happened[source[i]] = True
    return happened


@compiled
def _laid_out(of_row: Int32, happened: Bool, transaction: Int32, place: Int32) -> tuple[Int64, Int32]:
    """(`Committed.first`, the row of each operation)."""
    count = 0 if len(transaction) == 0 else transaction[-1]
    first = np.zeros(count + 2, dtype=np.int64)
    for i in range(len(of_row)):
        if place[i] >= 0 and happened[of_row[i]]:
            first[transaction[of_row[i]] + 1] += 1
    for t in range(count + 1):
        first[t + 1] += first[t]
    row = np.empty(first[-1], dtype=np.int32)
    for i in range(len(of_row)):
        if place[i] >= 0 and happened[of_row[i]]:
            t = transaction[of_row[i]]
            row[first[t]] = i
            first[t] += 1
    # Filling has moved each beginning to the place of the next one.
    for t in range(count, -1, -1):
        first[t + 1] = first[t]
    first[0] = 0
    for t in range(1, count + 1):
        mine = row[first[t] : first[t + 1]]
        if len(mine) > 32:
            mine[:] = mine[np.argsort(place[mine])]
        for i in range(1, len(mine)):
            moved = mine[i]
            j = i - 1
            while j >= 0 and place[mine[j]] > place[moved]:
                mine[j + 1] = mine[j]
                j -= 1
            mine[j + 1] = moved
    return first, row


@compiled
def _writers(row: Int32, source: Int32, transaction: Int32) -> Int32:
    """`Committed.writer`."""
    writer = np.empty(len(row), dtype=np.int32)
    for i in range(len(row)):
        if source[row[i]] == IS_WRITE:
            writer[i] = WRITES
        elif source[row[i]] == INITIAL_VERSION:
            writer[i] = INITIAL
        else:
            writer[i] = transaction[source[row[i]]]
    return writer
