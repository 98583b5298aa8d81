"""The order of the versions of each list, from the longest read of it.

All reads of a list have to be prefixes of one order of appends, so the longest one shows the order. A read that is not
a prefix contradicts it: it still shows which append it ends in, but not what comes behind that. If a read shows an
element twice, only the first place counts. Elements compare exactly.

An append is committed if its transaction was ok, or is indefinite and an ok transaction read the element. Elements that
failed transactions appended, or that were never appended, are skipped: the version that a read saw is that of the last
committed element in it, and the next version that of the first committed element behind it in the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import INFO, NONE, OK, Bool, Int8, Int64, whole
from checkers.kernels.sorting import ascending
from checkers.transactions.elle.list_append.rows import ListRole, Lists, keys_of, lists_of_column
from checkers.transactions.elle.list_append.versions import (
    AppendedElements,
    KeyVersions,
    ReadLists,
    agreeing_reads,
    drop_repeated,
    first_shown,
    key_versions,
    last_appends,
    longest_reads,
    seen_versions,
)
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class KeyOperations:
    """Micro-operations sorted by key: those of key k are first[k]:first[k + 1]."""

    first: Int64
    key: Int64
    role: Int8
    """The ListRole, as in ROWS. `start`, `end`, `process` and `type` are those of the transaction."""
    type: Int8
    start: Int64
    end: Int64
    process: Int64
    place: Int64
    elsewhere: Int8
    value: Int64

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, kw_only=True)
class ListOrders:
    """All that is known of the lists of a bucket. Reads and appends are named by their rows; -1 is none."""

    names: pa.Array
    """The names of keys."""
    reads: KeyOperations
    """The reads in the order of start and place."""
    lists: Lists
    """What each read showed, without elements that it showed before."""
    again: Int64
    """By read: the first element that it shows again, or NONE."""
    appends: KeyOperations
    """The appends in the order of elements."""
    longest: Int64
    """By key: the first read of the longest list; of several such lists the least."""
    agrees: Bool
    """By read: whether it is a prefix of the longest."""
    versions: KeyVersions
    position: Int64
    """By append: its position in `versions.append`; -1 if the longest read does not show it."""
    reader: Int64
    """By append: the first read that shows it."""
    committed: Bool
    """By append: whether it is committed."""
    saw: Int64
    """By read: the last committed append that it shows."""
    next: Int64
    """By read: the first committed append behind it; -1 if it does not agree."""

    @property
    def read_lists(self) -> ReadLists:
        return ReadLists(self.reads.first, self.lists.first, self.lists.size, self.lists.pool)

    @property
    def appended(self) -> AppendedElements:
        return AppendedElements(self.appends.first, self.appends.value)


def list_orders(rows: pa.Table) -> ListOrders:
    """The orders of the lists of ROWS, which may come in any order."""
    names, key = keys_of(rows)
    reading = rows["role"].to_numpy() <= ListRole.LATER_READ
    reads, read_rows = _operations(rows, key, np.flatnonzero(reading), len(names), ("place", "start"))
    appends, _ = _operations(rows, key, np.flatnonzero(~reading), len(names), ("value",))
    appended = AppendedElements(appends.first, appends.value)
    column = lists_of_column(whole(rows["values"]))
    shown_lists = ReadLists(reads.first, column.first[read_rows], column.size[read_rows], column.pool)
    longest, agrees, again = _agreement(shown_lists)

    versions = key_versions(shown_lists, appended, longest)
    position = np.full(len(appends), -1, dtype=np.int64)
    shown_versions = np.flatnonzero(versions.append >= 0)
    position[versions.append[shown_versions]] = shown_versions
    shown = first_shown(shown_lists, agrees, appended, versions)
    committed = (appends.type == OK) | (appends.type == INFO) & (shown >= 0)
    saw, following = seen_versions(shown_lists, agrees, appended, versions, committed)
    return ListOrders(
        names=names,
        reads=reads,
        lists=Lists(first=shown_lists.begin, size=shown_lists.size, pool=shown_lists.pool),
        again=again,
        appends=appends,
        longest=longest,
        agrees=agrees,
        versions=versions,
        position=position,
        reader=shown,
        committed=committed,
        saw=saw,
        next=following,
    )


def last_shown(orders: ListOrders) -> Int64:
    """By read: the append of the element that it ends in; -1 if it is empty or that element was never appended."""
    return last_appends(orders.read_lists, orders.appended)


def _operations(
    rows: pa.Table, key: Int64, which: Int64, keys: int, sorted_by: tuple[str, ...]
) -> tuple[KeyOperations, Int64]:
    """(some of the ROWS, their numbers), sorted by key and, within a key, by the last of these columns, then by the one
    before it."""
    first, of = _by_key(key, which, keys)
    for name in sorted_by:
        _sort_within(first, of, rows[name].to_numpy().astype(np.int64))
    names = ("role", "type", "start", "end", "process", "place", "elsewhere", "value")
    return KeyOperations(first=first, key=key[of], **{name: rows[name].to_numpy()[of] for name in names}), of


def _agreement(reads: ReadLists) -> tuple[Int64, Bool, Int64]:
    """(longest, agrees, again), as in ListOrders. Takes elements that come again out of `reads`."""
    again = np.full(len(reads.size), NONE, dtype=np.int64)
    longest = longest_reads(reads)
    agrees, doubtful = agreeing_reads(reads, longest)
    if doubtful.any():
        drop_repeated(reads, doubtful, again)
        longest = longest_reads(reads)
        agrees, _ = agreeing_reads(reads, longest)
    return longest, agrees, again


@compiled
def _by_key(key: Int64, rows: Int64, keys: int) -> tuple[Int64, Int64]:
    """(first, rows sorted by key). Rows of key k are at first[k]:first[k + 1] and keep their order."""
    first = np.zeros(keys + 1, dtype=np.int64)
    for row in rows:
        first[key[row] + 1] += 1
    for k in range(keys):
        first[k + 1] += first[k]
    free = first[:-1].copy()
    result = np.empty(len(rows), dtype=np.int64)
    for row in rows:
        result[free[key[row]]] = row
        free[key[row]] += 1
    return first, result


@compiled
def _sort_within(first: Int64, rows: Int64, by: Int64) -> None:
    """Sort the rows of each key, most of which are sorted already. Ties keep their order."""
    for k in range(len(first) - 1):
        low, high = first[k], first[k + 1]
        for i in range(low + 1, high):
            if by[rows[i]] < by[rows[i - 1]]:
                keys = np.empty(high - low, dtype=np.int64)
                own = np.empty(high - low, dtype=np.int64)
                for j in range(high - low):
                    own[j] = rows[low + j]
                    keys[j] = by[own[j]]
                order = ascending(keys)
                for j in range(high - low):
                    rows[low + j] = own[order[j]]
                break
