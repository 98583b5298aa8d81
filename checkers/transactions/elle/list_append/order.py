"""The order of the versions of each list, from the longest read of it.

All reads of a list have to be prefixes of one order of appends, so that the longest one tells the order. A read that is
none contradicts it: it still tells who wrote what it ends in, but not what comes behind that. A read that shows an
element twice is taken for its elements where they come first. Elements compare exactly.

An append is committed if its transaction was ok, or is indefinite and an ok transaction read the element. What failed
transactions appended, and what nobody did, is passed over: the version that a read saw is that of the last committed
element in it, and the next one that of the first committed element behind it in the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import INFO, NONE, OK, Bool, Int8, Int64, whole
from checkers.kernels.sorting import ascending
from checkers.transactions.elle.list_append.rows import ListRole, Lists, keys_of, lists_of_column
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class Micro:
    """Micro-operations sorted by key: those of key k are first[k]:first[k + 1]."""

    first: Int64
    key: Int64
    role: Int8
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
    """All that is known of the lists of a bucket. Rows of `reads` and `appends` are referred to by number, -1 is none.

    Versions are flat: those of key k are version_first[k]:version_first[k + 1].
    """

    names: pa.Array
    """Of keys."""
    reads: Micro
    """In order of start and place."""
    lists: Lists
    """What each of them read; elements that came again are left out."""
    again: Int64
    """Of each read an element that it shows twice, the one that comes again first; NONE without one."""
    appends: Micro
    """In order of the element."""
    longest: Int64
    """Of each key the first read among those that show most; among different ones the least."""
    agrees: Bool
    """Of each read: whether it is a prefix of the longest."""
    version_first: Int64
    version: Int64
    """Of each element of the longest read the append; -1 if there was none."""
    position: Int64
    """Of each append its position in `version`; -1 if the longest read does not show it."""
    shown: Int64
    """Of each append the first read that shows it."""
    committed: Bool
    """Of each append."""
    saw: Int64
    """Of each read the last committed append that it shows."""
    next: Int64
    """Of each read that agrees the first committed append behind it; -1 for others."""


def orders(rows: pa.Table) -> ListOrders:
    """From ROWS, in any order."""
    names, key = keys_of(rows)
    role = rows["role"].to_numpy()
    reading = role <= ListRole.LATER_READ
    read_first, read_rows = _by_key(key, np.flatnonzero(reading), len(names))
    append_first, append_rows = _by_key(key, np.flatnonzero(~reading), len(names))
    for first, of, by in (
        (read_first, read_rows, "place"),
        (read_first, read_rows, "start"),
        (append_first, append_rows, "value"),
    ):
        _sort_within(first, of, rows[by].to_numpy().astype(np.int64))
    reads, appends = (
        Micro(
            first=first,
            key=key[of],
            **{name: rows[name].to_numpy()[of] for name in ("role", "type", "start", "end", "place", "elsewhere")},
            process=rows["process"].to_numpy()[of],
            value=rows["value"].to_numpy()[of],
        )
        for first, of in ((read_first, read_rows), (append_first, append_rows))
    )
    column = lists_of_column(whole(rows["values"]))
    first, size, pool = column.first[read_rows], column.size[read_rows], column.pool
    again = np.full(len(reads), NONE, dtype=np.int64)

    longest = _longest(read_first, first, size, pool)
    agrees, doubtful = _agreeing(read_first, longest, first, size, pool)
    if doubtful.any():
        _drop_repeated(read_first, doubtful, first, size, pool, again)
        longest = _longest(read_first, first, size, pool)
        agrees, _ = _agreeing(read_first, longest, first, size, pool)
    version_first = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.where(longest >= 0, size[longest], 0) if len(reads) else longest + 1, out=version_first[1:])
    version, position, shown = _versions(
        read_first, longest, agrees, first, size, pool, append_first, appends.value, version_first
    )
    committed = (appends.type == OK) | (appends.type == INFO) & (shown >= 0)
    saw, following = _seen(
        read_first, agrees, first, size, pool, append_first, appends.value, version_first, version, committed
    )
    return ListOrders(
        names=names,
        reads=reads,
        lists=Lists(first=first, size=size, pool=pool),
        again=again,
        appends=appends,
        longest=longest,
        agrees=agrees,
        version_first=version_first,
        version=version,
        position=position,
        shown=shown,
        committed=committed,
        saw=saw,
        next=following,
    )


@compiled
def _by_key(key: Int64, rows: Int64, keys: int) -> tuple[Int64, Int64]:
    """(first, rows sorted by their keys), where rows of key k are at first[k]:first[k + 1] and keep their order."""
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
    """Sort the rows of each key, which is done already for most; ties keep their order."""
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


@compiled
def _longest(read_first: Int64, first: Int64, size: Int64, pool: Int64) -> Int64:
    """As Orders.longest."""
    result = np.full(len(read_first) - 1, -1, dtype=np.int64)
    for k in range(len(result)):
        best = -1
        for read in range(read_first[k], read_first[k + 1]):
            if best < 0 or size[read] > size[best]:
                best = read
            elif size[read] == size[best]:
                for i in range(size[read]):
                    one, other = pool[first[read] + i], pool[first[best] + i]
                    if one != other:
                        if one < other:
                            best = read
                        break
        result[k] = best
    return result


@compiled
def _agreeing(read_first: Int64, longest: Int64, first: Int64, size: Int64, pool: Int64) -> tuple[Bool, Bool]:
    """(whether each read is a prefix of the longest, keys of which one is not or the longest shows something twice)."""
    agrees = np.full(len(first), True)
    doubtful = np.zeros(len(longest), dtype=np.bool_)
    for k in range(len(longest)):
        if longest[k] < 0:
            continue
        most = pool[first[longest[k]] : first[longest[k]] + size[longest[k]]]
        order = ascending(most)
        for i in range(1, len(order)):
            doubtful[k] |= most[order[i]] == most[order[i - 1]]
        for read in range(read_first[k], read_first[k + 1]):
            for i in range(size[read]):
                if pool[first[read] + i] != most[i]:
                    agrees[read] = False
                    doubtful[k] = True
                    break
    return agrees, doubtful


@compiled
def _drop_repeated(read_first: Int64, doubtful: Bool, first: Int64, size: Int64, pool: Int64, again: Int64) -> None:
    """Of the doubtful keys' reads, take out what came before in the same one."""
    for k in range(len(doubtful)):
        if not doubtful[k]:
            continue
        for read in range(read_first[k], read_first[k + 1]):
            own = pool[first[read] : first[read] + size[read]]
            order = ascending(own)
            repeated = np.zeros(len(own), dtype=np.bool_)
            for i in range(1, len(own)):
                repeated[order[i]] = own[order[i]] == own[order[i - 1]]
            size[read] = 0
            for i in range(len(own)):
                if not repeated[i]:
                    own[size[read]] = own[i]
                    size[read] += 1
                elif again[read] == NONE:
                    again[read] = own[i]


@compiled
def append_of(value: int, low: int, high: int, values: Int64) -> int:
    """The row among values[low:high], which ascend, that has this one; -1 without one."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == value else -1


@compiled
def _versions(
    read_first: Int64,
    longest: Int64,
    agrees: Bool,
    first: Int64,
    size: Int64,
    pool: Int64,
    append_first: Int64,
    values: Int64,
    version_first: Int64,
) -> tuple[Int64, Int64, Int64]:
    """As Orders: (version, position, shown)."""
    version = np.full(version_first[-1], -1, dtype=np.int64)
    position = np.full(len(values), -1, dtype=np.int64)
    shown = np.full(len(values), -1, dtype=np.int64)
    for k in range(len(longest)):
        if longest[k] < 0:
            continue
        low, high, base = append_first[k], append_first[k + 1], version_first[k]
        for i in range(size[longest[k]]):
            append = append_of(pool[first[longest[k]] + i], low, high, values)
            version[base + i] = append
            if append >= 0:
                position[append] = base + i
        # Reads come by their start: what an earlier one has shown is not looked at again.
        known = 0
        for read in range(read_first[k], read_first[k + 1]):
            if agrees[read]:
                for i in range(known, size[read]):
                    append = version[base + i]
                    if append >= 0 and shown[append] < 0:
                        shown[append] = read
                known = max(known, size[read])
            else:
                for i in range(size[read]):
                    append = append_of(pool[first[read] + i], low, high, values)
                    if append >= 0 and shown[append] < 0:
                        shown[append] = read
    return version, position, shown


@compiled
def _seen(
    read_first: Int64,
    agrees: Bool,
    first: Int64,
    size: Int64,
    pool: Int64,
    append_first: Int64,
    values: Int64,
    version_first: Int64,
    version: Int64,
    committed: Bool,
) -> tuple[Int64, Int64]:
    """As Orders: (saw, next)."""
    saw = np.full(len(first), -1, dtype=np.int64)
    following = np.full(len(first), -1, dtype=np.int64)
    for k in range(len(read_first) - 1):
        own = version[version_first[k] : version_first[k + 1]]
        before = np.full(len(own) + 1, -1, dtype=np.int64)
        behind = np.full(len(own) + 1, -1, dtype=np.int64)
        for i in range(len(own)):
            before[i + 1] = own[i] if own[i] >= 0 and committed[own[i]] else before[i]
        for i in range(len(own) - 1, -1, -1):
            behind[i] = own[i] if own[i] >= 0 and committed[own[i]] else behind[i + 1]
        for read in range(read_first[k], read_first[k + 1]):
            if agrees[read]:
                saw[read] = before[size[read]]
                following[read] = behind[size[read]]
                continue
            for i in range(size[read] - 1, -1, -1):
                append = append_of(pool[first[read] + i], append_first[k], append_first[k + 1], values)
                if append >= 0 and committed[append]:
                    saw[read] = append
                    break
    return saw, following


@compiled
def _last_appends(first: Int64, size: Int64, pool: Int64, read_key: Int64, append_first: Int64, values: Int64) -> Int64:
    """Of each read the append of the element that it ends in; -1 if it is empty or nobody appended that."""
    result = np.full(len(first), -1, dtype=np.int64)
    for read in range(len(first)):
        if size[read]:
            k = read_key[read]
            last = pool[first[read] + size[read] - 1]
            result[read] = append_of(last, append_first[k], append_first[k + 1], values)
    return result


def last_shown(known: ListOrders) -> Int64:
    """Of each read the append of the element that it ends in; -1 if it is empty or nobody appended that."""
    lists = known.lists
    return _last_appends(lists.first, lists.size, lists.pool, known.reads.key, known.appends.first, known.appends.value)
