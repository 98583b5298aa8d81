"""Transactions on lists as transactions on registers whose order of writes is partly known.

A read of a list becomes a read of the last append in it. No information is lost as long as every read agrees with the
longest one, which `key_findings` checks; reads that do not are left out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import FAIL, INFO, NONE, OK, Bool, Int64
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.list_append.dependencies import dependencies
from checkers.transactions.elle.list_append.order import KeyOperations, ListOrders, last_shown, list_orders
from checkers.transactions.elle.list_append.rows import ListRole
from checkers.transactions.history.committed import NEVER
from checkers.transactions.history.committed_rows import INITIAL_VERSION, IS_WRITE, KNOWN, KNOWN_IF_BOTH, RESOLVED

PLACES = 1 << 20
"""A number greater than that of any transaction's micro-operations."""


def list_resolved(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys: RESOLVED."""
    known = list_orders(rows)
    reads, appends = known.reads, known.appends
    number = key_numbers(known)

    writes = np.flatnonzero((appends.role == ListRole.APPEND) & (appends.type != FAIL))
    read, read_from = external_reads(known)
    found = dependencies(known)
    ww = found.kind == Dependency.WW
    before, behind = found.source[ww], found.target_row[ww]
    place = np.where(happened(known)[behind], KNOWN, KNOWN_IF_BOTH)
    parts = (
        _rows(appends, writes, appends.place[writes], number, np.full(len(writes), IS_WRITE)),
        _rows(reads, read, reads.place[read], number, read_from),
        _rows(appends, behind, place, number, before),
    )
    return pa.concat_tables(parts).combine_chunks()


def _rows(of: KeyOperations, rows: Int64, place: Int64, number: Int64, read_from: Int64) -> pa.Table:
    return pa.Table.from_arrays(
        [
            pa.array(of.start[rows]),
            pa.array(np.where(of.type[rows] == OK, of.end[rows], NEVER)),
            pa.array(of.process[rows].astype(np.int32)),
            pa.array(of.type[rows]),
            pa.array(place.astype(np.int32)),
            pa.array(number[of.key[rows]]),
            pa.array(read_from.astype(np.int64)),
        ],
        schema=RESOLVED,
    )


def happened(orders: ListOrders) -> Bool:
    """By append: whether its transaction was ok, or something that it appended to the same key was read."""
    appends = orders.appends
    result: Bool = appends.type == OK
    indefinite = np.flatnonzero(appends.type == INFO)
    of = list(zip(appends.key[indefinite].tolist(), appends.start[indefinite].tolist(), strict=True))
    seen = {one for one, shown in zip(of, (orders.reader[indefinite] >= 0).tolist(), strict=True) if shown}
    result[indefinite] = [one in seen for one in of]
    return result


def key_numbers(orders: ListOrders) -> Int64:
    """The number of each key, made from the first micro-operation on it, so that no other key has the same."""
    number = np.full(len(orders.names), np.iinfo(np.int64).max, dtype=np.int64)
    for of in (orders.reads, orders.appends):
        np.minimum.at(number, of.key, of.start * PLACES + of.place)
    return number


def external_reads(orders: ListOrders) -> tuple[Int64, Int64]:
    """(reads of the last append of another transaction, or of the empty list; the starts of those transactions, or
    INITIAL_VERSION)."""
    reads, appends = orders.reads, orders.appends
    fit = orders.agrees & (orders.again == NONE) & (reads.role <= ListRole.UPDATE)
    empty = np.flatnonzero(fit & (orders.lists.size == 0))
    last = last_shown(orders)
    fit &= last >= 0
    of = last[fit]
    fit[fit] = orders.committed[of] & (appends.role[of] == ListRole.APPEND) & (appends.start[of] != reads.start[fit])
    shown = np.flatnonzero(fit)
    return (
        np.concatenate((shown, empty)),
        np.concatenate((appends.start[last[shown]], np.full(len(empty), INITIAL_VERSION))),
    )
