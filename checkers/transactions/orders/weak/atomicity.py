"""What read committed and read atomic force: a transaction that has read from u sees all of u.

Source: Moldrup, Pavlogiannis, "AWDIT: An Optimal Weak Database Isolation Tester" (PLDI 2025). For each read from u the
keys that u wrote are looked up among those that the reader read, or the other way round, whichever are fewer: with n
operations in all that takes n times the root of n steps. If a transaction reads a key again, its first read of the key
forces all that the later one does, so a key counts once for each u.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from checkers.kernels.columns import NO_INDEX, Bool, Int32, Int64
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.orders.weak.accesses import Accesses, longer, write_of
from checkers.transactions.orders.weak.precedence import Forced
from harness.compiled import compiled


def read_committed(accesses: Accesses) -> Forced:
    """Edges from u to the writer that the first read of each key after a read from u is from."""
    return _forced(_read_committed, accesses)


def read_atomic(accesses: Accesses) -> Forced:
    """Edges from u, which wrote a key, to each writer from which a reader of u reads the key instead."""
    return _forced(_read_atomic, accesses)


def own_writes(accesses: Accesses) -> Forced:
    """Edges from a session's last write of a key to each writer that the session then reads from instead. Sessions must
    be in order."""
    rows = accesses.committed
    source, target = _own_writes(
        rows.first, rows.key, rows.writer, accesses.definite, accesses.member_first, accesses.member, accesses.keys
    )
    return Forced(source=source, target=target)


Kernel = Callable[[Int64, Int32, Int32, Int64, Int32, int], tuple[Int32, Int32]]


def _forced(kernel: Kernel, accesses: Accesses) -> Forced:
    rows = accesses.committed
    source, target = kernel(rows.first, rows.key, rows.writer, accesses.written_first, accesses.written, accesses.keys)
    return Forced(source=source, target=target)


@compiled
def _read_committed(
    first: Int64, key: Int32, writer: Int32, written_first: Int64, written: Int32, keys: int
) -> tuple[Int32, Int32]:
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count = 0
    reader = np.zeros(len(first), dtype=np.int32)
    """The last transaction found to read from each one; it begins to do so at `begins`."""
    begins = np.zeros(len(first), dtype=np.int64)
    shown_to = np.zeros(keys, dtype=np.int32)
    """The last transaction found to read each key; the writer that it reads from next is in `shown`."""
    shown = np.zeros(keys, dtype=np.int32)
    later = np.empty(keys, dtype=np.int32)
    for r in range(1, len(first) - 1):
        for i in range(first[r], first[r + 1]):
            u = writer[i]
            if u > 0 and reader[u] != r:
                reader[u] = r
                begins[u] = i
        distinct = 0
        for i in range(first[r + 1] - 1, first[r] - 1, -1):
            u, k = writer[i], key[i]
            if u == WRITES:
                continue
            if u != INITIAL:
                room = count + distinct + 1
                source, target = longer(source, room), longer(target, room)
                if shown_to[k] == r and shown[k] != u:
                    source[count], target[count] = u, shown[k]
                    count += 1
                if begins[u] == i and distinct < written_first[u + 1] - written_first[u]:
                    for j in range(distinct):
                        other = later[j]
                        if other != k and shown[other] != u and write_of(u, other, written_first, written) != NO_INDEX:
                            source[count], target[count] = u, shown[other]
                            count += 1
                elif begins[u] == i:
                    for j in range(written_first[u], written_first[u + 1]):
                        other = written[j]
                        if other != k and shown_to[other] == r and shown[other] != u:
                            source[count], target[count] = u, shown[other]
                            count += 1
            if shown_to[k] != r:
                shown_to[k] = r
                later[distinct] = k
                distinct += 1
            shown[k] = u
    return source[:count].copy(), target[:count].copy()


@compiled
def _read_atomic(
    first: Int64, key: Int32, writer: Int32, written_first: Int64, written: Int32, keys: int
) -> tuple[Int32, Int32]:
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count = 0
    reader = np.zeros(len(first), dtype=np.int32)
    shown_to = np.zeros(keys, dtype=np.int32)
    shown = np.zeros(keys, dtype=np.int32)
    read = np.empty(keys, dtype=np.int32)
    for r in range(1, len(first) - 1):
        distinct = 0
        for i in range(first[r], first[r + 1]):
            u, k = writer[i], key[i]
            if u == WRITES:
                continue
            if shown_to[k] != r:
                shown_to[k] = r
                shown[k] = u
                read[distinct] = k
                distinct += 1
            elif shown[k] != u:
                # Each precedes the other. Nothing need be added for INITIAL, which precedes everything anyway.
                source, target = longer(source, count + 2), longer(target, count + 2)
                for newer, older in ((u, shown[k]), (shown[k], u)):
                    if newer != INITIAL:
                        source[count], target[count] = newer, older
                        count += 1
        if distinct < 2:
            continue
        for i in range(first[r], first[r + 1]):
            u = writer[i]
            if u <= 0 or reader[u] == r:
                continue
            reader[u] = r
            source, target = longer(source, count + distinct), longer(target, count + distinct)
            if distinct < written_first[u + 1] - written_first[u]:
                for j in range(distinct):
                    k = read[j]
                    if shown[k] != u and write_of(u, k, written_first, written) != NO_INDEX:
                        source[count], target[count] = u, shown[k]
                        count += 1
            else:
                for j in range(written_first[u], written_first[u + 1]):
                    k = written[j]
                    if shown_to[k] == r and shown[k] != u:
                        source[count], target[count] = u, shown[k]
                        count += 1
    return source[:count].copy(), target[:count].copy()


@compiled
def _own_writes(
    first: Int64, key: Int32, writer: Int32, definite: Bool, member_first: Int64, member: Int32, keys: int
) -> tuple[Int32, Int32]:
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count = 0
    session = np.full(keys, -1, dtype=np.int32)
    """The last session found to write each key; its last writer there is in `last`."""
    last = np.zeros(keys, dtype=np.int32)
    for s in range(len(member_first) - 1):
        for m in range(member_first[s], member_first[s + 1]):
            t = member[m]
            for i in range(first[t], first[t + 1]):
                if writer[i] != WRITES and session[key[i]] == s and last[key[i]] != writer[i]:
                    source, target = longer(source, count + 1), longer(target, count + 1)
                    source[count], target[count] = last[key[i]], writer[i]
                    count += 1
            for i in range(first[t], first[t + 1]):
                if writer[i] == WRITES and definite[t]:
                    session[key[i]] = s
                    last[key[i]] = t
    return source[:count].copy(), target[:count].copy()
