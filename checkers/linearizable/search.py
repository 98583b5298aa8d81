"""Any register: a search through all orders, as late as possible, and never twice through the same configuration.

A configuration is what may be true at one moment: the value, and which of the open operations have taken effect. Time
runs over invocations and completions; when an operation completes, it must have taken effect in each
configuration that survives, so from each one that lacks it all ways are tried to let open operations take
effect until it has (just-in-time linearization). Three observations keep the sets small:
- A read that may take effect does so at once: it changes nothing, so waiting wins nothing. So does a failed cas
  that is an answer: a read of anything but what it expected.
- Indefinite operations never complete. Equal ones (same write, same cas) are only counted; a configuration
  that has used fewer of them, and is equal otherwise, can do all that the other can, which is dropped.
- An indefinite operation matters no longer once the last read, or cas, that could tell its value has completed.
Between operations nothing is open, and only values are left: long histories are as cheap as short ones.

The number of configurations is bounded; a register that needs more is undecided, and how far it came is told. The
bound counts steps, not seconds, so that every engine and every machine decides alike.

Source: Wing and Gong, Testing and Verifying Concurrent Objects, JPDC 17 (1993); Lowe, Testing for
Linearizability, CCPE 29 (2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int8, Int64
from checkers.kernels.compiled import compiled
from checkers.linearizable.operations import CAS, CAS_MISS, INITIAL, NEVER, READ, Operations

SLOTS = 63
"""At most so many definite operations may be open at once: they are bits of one number."""

INVOKED, COMPLETED, MAY_HAPPEN, OVER = range(4)
"""Events. OVER: equal indefinite operations do not matter any more."""

LINEARIZABLE, NOT_LINEARIZABLE, UNDECIDED = range(3)


@dataclass(frozen=True, kw_only=True)
class Searched:
    """How the search ended."""

    outcome: int
    stuck_at: int
    """NOT_LINEARIZABLE: the operation that fits nowhere. UNDECIDED: the one that was not decided any more."""
    possible: tuple[int, ...]
    """Numbers of the values that the register could have had before it completed."""
    explored: int
    reason: str = ""


def search(operations: Operations, *, limit: int) -> Searched:
    """Decide one register; at most `limit` configurations are explored."""
    indefinite = np.flatnonzero(~operations.definite)
    definite = np.flatnonzero(operations.definite)
    identity = np.stack((operations.f[indefinite], operations.value[indefinite], operations.expected[indefinite]))
    kinds, kind = np.unique(identity, axis=1, return_inverse=True)
    last_told = _last_told(operations, definite, kinds)
    over = last_told[kinds[1]] if kinds.shape[1] else np.empty(0, dtype=np.int64)
    matters = operations.start[indefinite] < over[kind] if len(indefinite) else np.empty(0, dtype=np.bool_)
    indefinite, kind = indefinite[matters], kind[matters]

    opened = np.full(kinds.shape[1], NEVER, dtype=np.int64)
    np.minimum.at(opened, kind, operations.start[indefinite])
    ever = np.flatnonzero(opened != NEVER)
    slot, slots = _places(operations.start[definite], operations.end[definite])
    if slots > SLOTS:
        reason = f"{slots} operations were open at once, more than {SLOTS}"
        return Searched(outcome=UNDECIDED, stuck_at=-1, possible=(), explored=0, reason=reason)
    order = ever[np.argsort(opened[ever], kind="stable")]
    column = np.full(kinds.shape[1], -1, dtype=np.int64)
    column[order], columns = _places(opened[order], over[order])
    slot_of = np.full(len(operations.f), -1, dtype=np.int64)
    slot_of[definite] = slot

    event, subject, time = (
        np.concatenate(parts)
        for parts in (
            [np.repeat(kind_of_event, n) for kind_of_event, n in _counts(definite, indefinite, ever)],
            [definite, definite, kind, ever],
            [operations.start[definite], operations.end[definite], operations.start[indefinite], over[ever]],
        )
    )
    # A completion and the OVER that hangs on it have the same time; the completion comes first.
    order = np.lexsort((event, time))
    outcome, at, explored, possible = _run(
        event[order].astype(np.int64),
        subject[order].astype(np.int64),
        slot_of,
        operations.f,
        operations.value,
        operations.expected,
        kinds.astype(np.int64),
        column,
        max(columns, 1),
        limit,
    )
    return Searched(
        outcome=int(outcome),
        stuck_at=int(subject[order][at]) if at >= 0 else -1,
        possible=tuple(sorted({int(value) for value in possible})),
        explored=int(explored),
        reason=f"{limit} configurations were not enough" if outcome == UNDECIDED else "",
    )


def _counts(definite: Int64, indefinite: Int64, ever: Int64) -> list[tuple[int, int]]:
    return [(INVOKED, len(definite)), (COMPLETED, len(definite)), (MAY_HAPPEN, len(indefinite)), (OVER, len(ever))]


def _last_told(operations: Operations, definite: Int64, kinds: Int64) -> Int64:
    """For each value the completion of the last operation that could tell that it was there; -1 if there is none.

    An indefinite cas tells the value that it expects as long as the one that it writes may be told.
    """
    last = np.full(len(operations.values), -1, dtype=np.int64)
    reads = definite[operations.f[definite] == READ]
    swaps = definite[operations.f[definite] == CAS]
    np.maximum.at(last, operations.value[reads], operations.end[reads])
    np.maximum.at(last, operations.expected[swaps], operations.end[swaps])
    misses = definite[operations.f[definite] == CAS_MISS]
    for expected in np.unique(operations.expected[misses]):
        others = np.arange(len(last)) != expected
        last[others] = np.maximum(last[others], operations.end[misses[operations.expected[misses] == expected]].max())
    passed_on = kinds[:, kinds[0] == CAS]
    while True:
        before = last.copy()
        np.maximum.at(last, passed_on[2], last[passed_on[1]])
        if np.array_equal(before, last):
            return last


@compiled
def _places(start: Int64, end: Int64) -> tuple[Int64, int]:
    """The lowest free place for each interval, in ascending order of their starts, and how many places that takes."""
    place = np.empty(len(start), dtype=np.int64)
    busy_until = np.empty(len(start), dtype=np.int64)
    places = 0
    for i in range(len(start)):
        p = 0
        while p < places and busy_until[p] >= start[i]:
            p += 1
        if p == places:
            places += 1
        busy_until[p] = end[i]
        place[i] = p
    return place, places


@compiled
def _hash(row: Int64) -> int:
    h = np.uint64(1469598103934665603)
    for x in row:
        h = (h ^ np.uint64(x)) * np.uint64(1099511628211)
        h ^= h >> np.uint64(29)
    return int(h & np.uint64(0x7FFFFFFFFFFFFFFF))


@compiled
def _add(rows: Int64, count: int, table: Int64, row: Int64) -> tuple[Int64, int, Int64]:
    """Add a row to a set: rows[:count], found by an open hash table of positions. Both grow as needed."""
    mask = len(table) - 1
    at = _hash(row) & mask
    while table[at] >= 0:
        same = True
        for c in range(len(row)):
            if rows[table[at], c] != row[c]:
                same = False
                break
        if same:
            return rows, count, table
        at = (at + 1) & mask
    if count == len(rows):
        grown = np.empty((2 * len(rows), rows.shape[1]), dtype=np.int64)
        grown[:count] = rows[:count]
        rows = grown
    rows[count] = row
    table[at] = count
    count += 1
    if 2 * count > len(table):
        table = np.full(2 * len(table), -1, dtype=np.int64)
        mask = len(table) - 1
        for i in range(count):
            at = _hash(rows[i]) & mask
            while table[at] >= 0:
                at = (at + 1) & mask
            table[at] = i
    return rows, count, table


@compiled
def _undominated(rows: Int64, count: int) -> int:
    """Drop configurations that another one, equal but for fewer indefinite operations used, makes superfluous."""
    kept = 0
    for i in range(count):
        superfluous = False
        for j in range(count):
            if i == j or rows[i, 0] != rows[j, 0] or rows[i, 1] != rows[j, 1]:
                continue
            less = True
            for c in range(2, rows.shape[1]):
                if rows[j, c] > rows[i, c]:
                    less = False
                    break
            if less:
                superfluous = True
                break
        if not superfluous:
            rows[kept], kept = rows[i].copy(), kept + 1
    return kept


@compiled
def _sees(o: int, held: int, f: Int8, value: Int64, expected: Int64) -> bool:
    """The operation changes nothing and fits the value that the register holds."""
    return bool((f[o] == READ and value[o] == held) or (f[o] == CAS_MISS and expected[o] != held))


@compiled
def _with_reads(row: Int64, open_in: Int64, f: Int8, value: Int64, expected: Int64) -> None:
    """Let each open operation that only looks take effect where it fits."""
    for k in range(len(open_in)):
        o = open_in[k]
        if o >= 0 and _sees(o, row[0], f, value, expected):
            row[1] |= np.int64(1) << k


@compiled
def _run(
    event: Int64,
    subject: Int64,
    slot_of: Int64,
    f: Int8,
    value: Int64,
    expected: Int64,
    kinds: Int64,
    column: Int64,
    columns: int,
    limit: int,
) -> tuple[int, int, int, Int64]:
    """Go over the events. Returns (outcome, event where it stopped or -1, configurations explored, values possible).

    A configuration is a row: the value, the open operations that took effect as bits, and for each column how many
    of its equal indefinite operations did.
    """
    width = 2 + columns
    open_in = np.full(SLOTS, -1, dtype=np.int64)
    available = np.zeros(kinds.shape[1], dtype=np.int64)
    current = np.zeros((16, width), dtype=np.int64)
    current[0, 0] = INITIAL
    count = 1
    explored = 0
    row = np.zeros(width, dtype=np.int64)
    for at in range(len(event)):
        what = subject[at]
        if event[at] == INVOKED:
            open_in[slot_of[what]] = what
            for i in range(count):
                if _sees(what, current[i, 0], f, value, expected):
                    current[i, 1] |= np.int64(1) << slot_of[what]
            continue
        if event[at] == MAY_HAPPEN:
            available[what] += 1
            continue
        after = np.empty((16, width), dtype=np.int64)
        after_count = 0
        after_table = np.full(32, -1, dtype=np.int64)
        if event[at] == OVER:
            available[what] = 0
            for i in range(count):
                row[:] = current[i]
                row[2 + column[what]] = 0
                after, after_count, after_table = _add(after, after_count, after_table, row)
            current, count = after, after_count
            continue

        slot = slot_of[what]
        bit = np.int64(1) << slot
        seen = np.empty((16, width), dtype=np.int64)
        seen_count = 0
        seen_table = np.full(32, -1, dtype=np.int64)
        for i in range(count):
            row[:] = current[i]
            if row[1] & bit:
                row[1] ^= bit
                after, after_count, after_table = _add(after, after_count, after_table, row)
            else:
                seen, seen_count, seen_table = _add(seen, seen_count, seen_table, row)
        done = 0
        while done < seen_count:
            explored += seen_count - done
            if explored > limit:
                return UNDECIDED, at, explored, current[:count, 0].copy()
            upto = seen_count
            for i in range(done, upto):
                for candidate in range(SLOTS + len(available)):
                    row[:] = seen[i]
                    if candidate < SLOTS:
                        o = open_in[candidate]
                        if o < 0 or f[o] == READ or f[o] == CAS_MISS or row[1] & (np.int64(1) << candidate):
                            continue
                        if f[o] == CAS and row[0] != expected[o]:
                            continue
                        row[0] = value[o]
                        row[1] |= np.int64(1) << candidate
                    else:
                        k = candidate - SLOTS
                        if available[k] == 0 or row[2 + column[k]] >= available[k] or row[0] == kinds[1, k]:
                            continue
                        if kinds[0, k] == CAS and row[0] != kinds[2, k]:
                            continue
                        row[0] = kinds[1, k]
                        row[2 + column[k]] += 1
                    _with_reads(row, open_in, f, value, expected)
                    if row[1] & bit:
                        row[1] ^= bit
                        after, after_count, after_table = _add(after, after_count, after_table, row)
                    else:
                        seen, seen_count, seen_table = _add(seen, seen_count, seen_table, row)
            done = upto
        if after_count == 0:
            return NOT_LINEARIZABLE, at, explored, current[:count, 0].copy()
        open_in[slot] = -1
        if columns and after_count > 1:
            after_count = _undominated(after, after_count)
        current, count = after, after_count
    return LINEARIZABLE, -1, explored, current[:count, 0].copy()
