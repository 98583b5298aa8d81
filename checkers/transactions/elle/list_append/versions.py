"""Kernels that find the order of each list's versions: the longest read, which reads agree with it, and what each saw.

    T1 append x 1 · T2 append x 2 · T3 reads x = [1, 2] · T4 reads x = [1]

T3's read is the longest: its versions are T1's append, then T2's. T4's read is a prefix of it and so agrees; it saw
T1's append, and T2's comes next. A read [2] would not agree: it would have seen T2's append, and nothing would come
next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NONE, Bool, Int64
from checkers.kernels.sorting import ascending
from harness.compiled import compiled


class ReadLists(NamedTuple):
    """Reads sorted by key, start and place: those of key k are first[k]:first[k + 1], and read i shows
    pool[begin[i]:begin[i] + size[i]]."""

    first: Int64
    begin: Int64
    size: Int64
    pool: Int64


class AppendedElements(NamedTuple):
    """Appends sorted by key and element: those of key k are first[k]:first[k + 1]."""

    first: Int64
    value: Int64


class KeyVersions(NamedTuple):
    """The append of each element of key k's longest read, at append[first[k]:first[k + 1]]; -1 if there was none."""

    first: Int64
    append: Int64


@compiled
def shown_list(reads: ReadLists, read: int) -> Int64:
    return reads.pool[reads.begin[read] : reads.begin[read] + reads.size[read]]


@compiled
def longest_reads(reads: ReadLists) -> Int64:
    """By key: the first read of the longest list, of several such lists the least; -1 without reads."""
    result = np.full(len(reads.first) - 1, -1, dtype=np.int64)
    for k in range(len(result)):
        for read in range(reads.first[k], reads.first[k + 1]):
            if result[k] < 0 or _is_longer(reads, read, result[k]):
                result[k] = read
    return result


@compiled
def _is_longer(reads: ReadLists, read: int, other: int) -> bool:
    """Whether a read shows more than the other one, or as much and a lesser element where they first differ."""
    if reads.size[read] != reads.size[other]:
        return bool(reads.size[read] > reads.size[other])
    for i in range(reads.size[read]):
        one, two = reads.pool[reads.begin[read] + i], reads.pool[reads.begin[other] + i]
        if one != two:
            return bool(one < two)
    return False


@compiled
def agreeing_reads(reads: ReadLists, longest: Int64) -> tuple[Bool, Bool]:
    """(whether each read is a prefix of the longest; by key, whether one read is not, or the longest shows an element
    twice)."""
    agrees = np.full(len(reads.size), True)
    doubtful = np.zeros(len(longest), dtype=np.bool_)
    for k in range(len(longest)):
        if longest[k] < 0:
            continue
        most = shown_list(reads, longest[k])
        order = ascending(most)
        for i in range(1, len(order)):
            doubtful[k] |= most[order[i]] == most[order[i - 1]]
        for read in range(reads.first[k], reads.first[k + 1]):
            for i in range(reads.size[read]):
                if reads.pool[reads.begin[read] + i] != most[i]:
                    agrees[read] = False
                    doubtful[k] = True
                    break
    return agrees, doubtful


@compiled
def drop_repeated(reads: ReadLists, doubtful: Bool, again: Int64) -> None:
    """Take out of the doubtful keys' reads what they showed before: changes `size`, `pool` and `again`."""
    for k in range(len(doubtful)):
        if not doubtful[k]:
            continue
        for read in range(reads.first[k], reads.first[k + 1]):
            own = shown_list(reads, read)
            order = ascending(own)
            repeated = np.zeros(len(own), dtype=np.bool_)
            for i in range(1, len(own)):
                repeated[order[i]] = own[order[i]] == own[order[i - 1]]
            reads.size[read] = 0
            for i in range(len(own)):
                if not repeated[i]:
                    own[reads.size[read]] = own[i]
                    reads.size[read] += 1
                elif again[read] == NONE:
                    again[read] = own[i]


@compiled
def append_of(appends: AppendedElements, key: int, element: int) -> int:
    """The append of this element to the key, or -1."""
    low, high = appends.first[key], appends.first[key + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if appends.value[middle] < element:
            low = middle + 1
        else:
            high = middle
    return low if low < end and appends.value[low] == element else -1


@compiled
def key_versions(reads: ReadLists, appends: AppendedElements, longest: Int64) -> KeyVersions:
    first = np.zeros(len(longest) + 1, dtype=np.int64)
    for k in range(len(longest)):
        first[k + 1] = first[k] + (reads.size[longest[k]] if longest[k] >= 0 else 0)
    append = np.full(first[-1], -1, dtype=np.int64)
    for k in range(len(longest)):
        for i in range(first[k + 1] - first[k]):
            append[first[k] + i] = append_of(appends, k, reads.pool[reads.begin[longest[k]] + i])
    return KeyVersions(first, append)


@compiled
def first_shown(reads: ReadLists, agrees: Bool, appends: AppendedElements, versions: KeyVersions) -> Int64:
    """By append: the first read that shows it, or -1."""
    shown = np.full(len(appends.value), -1, dtype=np.int64)
    for k in range(len(reads.first) - 1):
        # Reads are sorted by start, so what an earlier one has shown is not looked at again.
        known = 0
        for read in range(reads.first[k], reads.first[k + 1]):
            for i in range(known if agrees[read] else 0, reads.size[read]):
                if agrees[read]:
                    append = versions.append[versions.first[k] + i]
                else:
                    append = append_of(appends, k, reads.pool[reads.begin[read] + i])
                if append >= 0 and shown[append] < 0:
                    shown[append] = read
            if agrees[read]:
                known = max(known, reads.size[read])
    return shown


@compiled
def seen_versions(
    reads: ReadLists, agrees: Bool, appends: AppendedElements, versions: KeyVersions, committed: Bool
) -> tuple[Int64, Int64]:
    """By read: (the last committed append that it shows, or -1; the first committed one behind it, or -1 if there is
    none or the read does not agree)."""
    saw = np.full(len(reads.size), -1, dtype=np.int64)
    following = np.full(len(reads.size), -1, dtype=np.int64)
    for k in range(len(reads.first) - 1):
        own = versions.append[versions.first[k] : versions.first[k + 1]]
        before = np.full(len(own) + 1, -1, dtype=np.int64)
        behind = np.full(len(own) + 1, -1, dtype=np.int64)
        for i in range(len(own)):
            before[i + 1] = own[i] if own[i] >= 0 and committed[own[i]] else before[i]
        for i in range(len(own) - 1, -1, -1):
            behind[i] = own[i] if own[i] >= 0 and committed[own[i]] else behind[i + 1]
        for read in range(reads.first[k], reads.first[k + 1]):
            if agrees[read]:
                saw[read] = before[reads.size[read]]
                following[read] = behind[reads.size[read]]
            else:
                saw[read] = _last_committed(reads, read, appends, k, committed)
    return saw, following


@compiled
def _last_committed(reads: ReadLists, read: int, appends: AppendedElements, key: int, committed: Bool) -> int:
    shown = shown_list(reads, read)
    for i in range(len(shown) - 1, -1, -1):
        append = append_of(appends, key, shown[i])
        if append >= 0 and committed[append]:
            return append
    return -1


@compiled
def last_appends(reads: ReadLists, appends: AppendedElements) -> Int64:
    """By read: the append of the element that it ends in; -1 if it is empty or that element was never appended."""
    result = np.full(len(reads.size), -1, dtype=np.int64)
    for k in range(len(reads.first) - 1):
        for read in range(reads.first[k], reads.first[k + 1]):
            if reads.size[read]:
                result[read] = append_of(appends, k, reads.pool[reads.begin[read] + reads.size[read] - 1])
    return result


@compiled
def unwritten_elements(
    reads: ReadLists, agrees: Bool, appends: AppendedElements, versions: KeyVersions
) -> tuple[Int64, Int64]:
    """(reads, elements that they show and that were never appended). Of the reads that agree, only those that show more
    than others before them are looked at."""
    count = 0
    for fill in range(2):
        which = np.empty(count if fill else 0, dtype=np.int64)
        found = np.empty(count if fill else 0, dtype=np.int64)
        count = 0
        for k in range(len(reads.first) - 1):
            known = 0
            for read in range(reads.first[k], reads.first[k + 1]):
                shown = shown_list(reads, read)
                for i in range(known if agrees[read] else 0, len(shown)):
                    version = versions.first[k] + i
                    append = versions.append[version] if agrees[read] else append_of(appends, k, shown[i])
                    if append < 0:
                        if fill:
                            which[count] = read
                            found[count] = shown[i]
                        count += 1
                if agrees[read]:
                    known = max(known, reads.size[read])
    return which, found
