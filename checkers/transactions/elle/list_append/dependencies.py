"""Edges between transactions that follow from the versions of each list.

  WW  from the writer of a version to the writer of the next one
  WR  from the writer of the version that a read saw to the reader
  RW  from a reader to the writer of the version behind the one that it saw, if it had not appended to the key before

What ok transactions appended and no read showed comes behind all that the longest read shows. The same holds for such
an append of an indefinite transaction, if that happened. A cycle through the transaction shows that it did: the cycle
leaves it by an edge to a transaction that saw something of it. If it appends to no other key, there is no such cycle,
and it gets no edges.

A read that contradicts the longest one has no RW edges.

A key whose last known state many transactions saw, and behind which many appended, would have edges without bound. So
at most UNSHOWN of these RW edges are kept for each key, and the others are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import INFO, OK, Bool, Int8, Int64, run_starts
from checkers.transactions.elle.edges import EDGES, Dependency, positions
from checkers.transactions.elle.list_append.order import ListOrders, list_orders
from checkers.transactions.elle.list_append.rows import ListRole
from harness.compiled import compiled

UNSHOWN = 1 << 20

LEFT_OUT = "edges left out"
UNORDERED = "keys of whose last versions no read shows the order"
"""The name under which `key_findings` counts them."""


@dataclass(frozen=True, kw_only=True)
class ListDependencies:
    """The edges of a bucket of keys. `source_row` and `target_row` are rows of reads or of appends, depending on the
    kind."""

    key: Int64
    kind: Int8
    source: Int64
    target: Int64
    source_row: Int64
    target_row: Int64


def list_edges(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys: EDGES."""
    return edges_of(list_orders(rows))


def edges_of(orders: ListOrders) -> pa.Table:
    """The EDGES of a bucket of lists."""
    found = dependencies(orders)
    read, append = (positions(of.start, of.end, of.type) for of in (orders.reads, orders.appends))
    source, target = (np.empty(len(found.kind), dtype=np.int64) for _ in range(2))
    for kind, of_source, of_target in (
        (Dependency.WW, append, append),
        (Dependency.WR, append, read),
        (Dependency.RW, read, append),
    ):
        mine = found.kind == kind
        source[mine] = of_source[found.source_row[mine]]
        target[mine] = of_target[found.target_row[mine]]
    columns = (found.kind, found.source, source, found.target, target)
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=EDGES)


def dependencies(orders: ListOrders) -> ListDependencies:
    """The edges, each at most once for each key, in the order of kinds, then of rows."""
    reads, appends = orders.reads, orders.appends
    committed = np.flatnonzero(orders.committed & (orders.position >= 0))
    by_version = committed[np.argsort(orders.position[committed])]
    source, target = by_version[:-1], by_version[1:]
    same = appends.key[source] == appends.key[target]
    ww = source[same], target[same]

    seen = np.flatnonzero(orders.saw >= 0)
    wr = orders.saw[seen], seen
    reading = np.flatnonzero((reads.role <= ListRole.UPDATE) & (orders.next >= 0))
    rw = reading, orders.next[reading]

    waiting, unshown = open_ends(orders)
    last = np.full(len(orders.names), -1, dtype=np.int64)
    last[appends.key[by_version]] = by_version
    behind = unshown[last[appends.key[unshown]] >= 0]
    ww_behind = last[appends.key[behind]], behind
    numbers = np.arange(len(orders.names) + 1)
    readers, writers = _pairs(
        np.searchsorted(reads.key[waiting], numbers), np.searchsorted(appends.key[unshown], numbers), UNSHOWN
    )
    rw_behind = waiting[readers], unshown[writers]

    groups = (
        (Dependency.WW, appends, appends, *ww),
        (Dependency.WW, appends, appends, *ww_behind),
        (Dependency.WR, appends, reads, *wr),
        (Dependency.RW, reads, appends, *rw),
        (Dependency.RW, reads, appends, *rw_behind),
    )
    found = ListDependencies(
        key=np.concatenate([of.key[rows] for _, of, _, rows, _ in groups]),
        kind=np.concatenate([np.full(len(rows), kind, dtype=np.int8) for kind, _, _, rows, _ in groups]),
        source=np.concatenate([of.start[rows] for _, of, _, rows, _ in groups]),
        target=np.concatenate([of.start[rows] for _, _, of, _, rows in groups]),
        source_row=np.concatenate([rows for _, _, _, rows, _ in groups]),
        target_row=np.concatenate([rows for _, _, _, _, rows in groups]),
    )
    return distinct(orders, found)


def open_ends(orders: ListOrders) -> tuple[Int64, Int64]:
    """(reads that saw all of the order, appends that are behind it if their transactions happened)."""
    reads, appends = orders.reads, orders.appends
    waiting = (reads.role <= ListRole.UPDATE) & orders.agrees & (orders.next < 0)
    matter = (appends.type == OK) | (appends.type == INFO) & (appends.elsewhere > 0)
    return np.flatnonzero(waiting), np.flatnonzero((orders.reader < 0) & matter)


def edges_left_out(orders: ListOrders) -> int:
    """How many RW edges exceed UNSHOWN for their key."""
    waiting, unshown = open_ends(orders)
    keys = len(orders.names)
    readers, writers = (
        np.bincount(of.key[rows], minlength=keys) for of, rows in ((orders.reads, waiting), (orders.appends, unshown))
    )
    return int(np.maximum(readers * writers - UNSHOWN, 0).sum())


def keys_unordered(orders: ListOrders) -> int:
    """How many keys have appends of several transactions behind their longest read."""
    _, unshown = open_ends(orders)
    key, start = orders.appends.key[unshown], orders.appends.start[unshown]
    order = np.lexsort((start, key))
    several = run_starts(key[order], start[order]) & ~run_starts(key[order])
    return len(np.unique(key[order][several]))


@compiled
def _pairs(first: Int64, other: Int64, limit: int) -> tuple[Int64, Int64]:
    """All pairs from first[k]:first[k + 1] and other[k]:other[k + 1], at most `limit` for each key: for readers 4 and 5
    and writers 7 and 8 with a limit of 3 these are (4, 7), (4, 8) and (5, 7)."""
    count = 0
    for k in range(len(first) - 1):
        count += min((first[k + 1] - first[k]) * (other[k + 1] - other[k]), limit)
    left = np.empty(count, dtype=np.int64)
    right = np.empty(count, dtype=np.int64)
    count = 0
    for k in range(len(first) - 1):
        pairs = min((first[k + 1] - first[k]) * (other[k + 1] - other[k]), limit)
        for i in range(pairs):
            left[count] = first[k] + i // (other[k + 1] - other[k])
            right[count] = other[k] + i % (other[k + 1] - other[k])
            count += 1
    return left, right


def distinct(orders: ListOrders, found: ListDependencies) -> ListDependencies:
    """The edges without those of a transaction to itself, and each only once for each key."""
    chosen = found.source != found.target
    suspects = np.flatnonzero(chosen & repeating(orders, found))
    by = tuple(column[suspects] for column in (found.key, found.kind, found.source, found.target))
    order = np.lexsort(by[::-1])
    chosen[suspects[order[~run_starts(*(column[order] for column in by))]]] = False
    return ListDependencies(
        key=found.key[chosen],
        kind=found.kind[chosen],
        source=found.source[chosen],
        target=found.target[chosen],
        source_row=found.source_row[chosen],
        target_row=found.target_row[chosen],
    )


def repeating(orders: ListOrders, found: ListDependencies) -> Bool:
    """Which edges may be there twice.

    One end is a transaction that read the key again, or that appended again after another one had, or several of whose
    appends are behind the longest read.
    """
    reads, appends = orders.reads, orders.appends
    same = (reads.start[1:] == reads.start[:-1]) & (reads.key[1:] == reads.key[:-1])
    again = np.append(same, False) | np.append(False, same)
    keys = np.zeros(len(orders.names), dtype=np.bool_)
    inner = appends.role == ListRole.INNER_APPEND
    ww = np.flatnonzero(found.kind == Dependency.WW)
    left = inner[found.source_row[ww]] & (found.source[ww] != found.target[ww])
    keys[found.key[ww[left]]] = True
    _, unshown = open_ends(orders)
    keys[appends.key[unshown[inner[unshown]]]] = True
    result = keys[found.key]
    for kind, reader in ((Dependency.WR, found.target_row), (Dependency.RW, found.source_row)):
        mine = found.kind == kind
        result[mine] |= again[reader[mine]]
    return result
