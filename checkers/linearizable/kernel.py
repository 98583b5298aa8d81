"""The search itself: integers in, integers out, so that one compiled kernel serves every model.

A configuration is a row: [state, placed, free, node, used…]. `placed` and `free` are bit sets over the slots of open
definite operations, `used` counts, by column, how many of some equal indefinite operations took effect, and `node` is
where the row's history lies in the trail (no part of its identity). States and kinds of operations are numbers; what a
kind does to a state is looked up in a table that its caller fills on demand: `advance` stops with MISSING where
it needs an entry that nobody has computed yet, having changed nothing about the event at which it stopped.
"""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int64
from checkers.kernels.compiled import compiled

SLOTS = 63
"""At most so many definite operations may be open at once: they are bits of one number."""

INVOKED, COMPLETED, MAY_HAPPEN, OVER = range(4)
"""Events. OVER: equal indefinite operations do not matter any more."""

DONE, STUCK, LIMIT, MISSING = range(4)
"""How `advance` ended."""

OTHER, READS, OVERWRITES = range(3)
"""What a kind does: READS never changes a state; OVERWRITES is always possible and gives the same state from any."""

STATE, PLACED, FREE, NODE, USED = range(5)
"""Columns of a configuration."""

ASKED = 65_536
"""At most so many missing entries are asked for at once, some of them again and again."""

COMPARED = 4_096
"""Sets of configurations larger than that are not searched for superfluous ones, which takes the square of the size."""


@compiled
def _mixed(x: int) -> int:
    h = np.uint64(x) * np.uint64(0x9E3779B97F4A7C15)
    return int((h ^ (h >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@compiled
def _hash(row: Int64) -> int:
    h = np.uint64(1469598103934665603)
    for c in range(len(row)):
        if c != NODE:
            h = (h ^ np.uint64(row[c])) * np.uint64(1099511628211)
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
            if c != NODE and rows[table[at], c] != row[c]:
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
def _without_superfluous(rows: Int64, count: int, reads: int, overwrites: int) -> int:
    """Drop configurations that another one makes superfluous: that can do all that it can.

    In the same state, it has placed the same operations, or a read more; what it owes as an overwrite is free, or as
    in the other; and it has used no more indefinite operations. Equal rows do not occur.
    """
    others = ~(reads | overwrites)
    kept = 0
    dropped = np.zeros(count, dtype=np.bool_)
    for i in range(count):
        for j in range(count):
            if i == j or dropped[j] or rows[i, STATE] != rows[j, STATE]:
                continue
            if (rows[i, PLACED] ^ rows[j, PLACED]) & others or rows[i, PLACED] & reads & ~rows[j, PLACED]:
                continue
            owed = overwrites & ~rows[j, FREE]
            if (rows[i, FREE] & owed) or ((rows[i, PLACED] ^ rows[j, PLACED]) & owed):
                continue
            less = True
            for c in range(USED, rows.shape[1]):
                if rows[j, c] > rows[i, c]:
                    less = False
                    break
            if less:
                dropped[i] = True
                break
    for i in range(count):
        if not dropped[i]:
            rows[kept] = rows[i]
            kept += 1
    return kept


@compiled
def find(table: Int64, entry: int) -> int:
    """Where an entry is in the table of transitions, or the free place where it belongs."""
    mask = len(table) - 1
    at = _mixed(entry) & mask
    while table[at, 0] >= 0 and table[at, 0] != entry:
        at = (at + 1) & mask
    return at


@compiled
def _with_reads(
    row: Int64,
    reads: Int64,
    open_in: Int64,
    kind_of: Int64,
    kinds: int,
    table: Int64,
    missing: Int64,
    asked: int,
    trail: Int64,
    nodes: int,
) -> tuple[int, Int64, int]:
    """Let each open read that fits take effect: it changes nothing, so waiting wins nothing."""
    for i in range(len(reads)):
        bit = np.int64(1) << reads[i]
        if row[PLACED] & bit:
            continue
        entry = row[STATE] * kinds + kind_of[open_in[reads[i]]]
        at = find(table, entry)
        if table[at, 0] < 0:
            asked = _ask(missing, asked, entry)
        elif table[at, 2] > 0:
            row[PLACED] |= bit
            trail, nodes = _record(trail, nodes, row, open_in[reads[i]])
    return asked, trail, nodes


@compiled
def _ask(missing: Int64, asked: int, entry: int) -> int:
    if asked < len(missing) and (asked == 0 or missing[asked - 1] != entry):
        missing[asked] = entry
        asked += 1
    return asked


@compiled
def _record(trail: Int64, nodes: int, row: Int64, what: int) -> tuple[Int64, int]:
    """Note that the row came about by `what`: an operation, or -1 - kind for an indefinite one. No trail, no notes."""
    if len(trail) == 0:
        return trail, nodes
    if nodes == len(trail):
        grown = np.empty((2 * len(trail), 2), dtype=np.int64)
        grown[:nodes] = trail
        trail = grown
    trail[nodes, 0] = row[NODE]
    trail[nodes, 1] = what
    row[NODE] = nodes
    return trail, nodes + 1


@compiled
def advance(
    event: Int64,
    subject: Int64,
    slot_of: Int64,
    kind_of: Int64,
    end: Int64,
    does: Int64,
    column: Int64,
    table: Int64,
    targets: Int64,
    missing: Int64,
    open_in: Int64,
    available: Int64,
    at: int,
    current: Int64,
    explored: int,
    limit: int,
    trail: Int64,
    nodes: int,
    quiet: int,
) -> tuple[int, int, Int64, int, int, Int64, int, int]:
    """Go over the events from `at` on, until they end or something stops it.

    Returns how it ended, the event there, the configurations before that event, how many were explored so far, how
    many entries are `missing`, the trail with its length, and the last event before which nothing was open.
    """
    kinds = len(does)
    count = len(current)
    row = np.zeros(current.shape[1], dtype=np.int64)
    before = np.zeros(current.shape[1], dtype=np.int64)
    tried = np.full(kinds, -1, dtype=np.int64)
    while at < len(event):
        what = subject[at]
        asked = 0
        if event[at] == MAY_HAPPEN:
            available[what] += 1
            at += 1
            continue
        if event[at] == INVOKED:
            if np.all(open_in < 0) and np.all(available == 0):
                quiet = at
            slot = slot_of[what]
            if does[kind_of[what]] == READS:
                for i in range(count):
                    entry = current[i, STATE] * kinds + kind_of[what]
                    if table[find(table, entry), 0] < 0:
                        asked = _ask(missing, asked, entry)
                if asked:
                    return MISSING, at, current[:count].copy(), explored, asked, trail, nodes, quiet
                for i in range(count):
                    if table[find(table, current[i, STATE] * kinds + kind_of[what]), 2] > 0:
                        current[i, PLACED] |= np.int64(1) << slot
                        trail, nodes = _record(trail, nodes, current[i], what)
            open_in[slot] = what
            at += 1
            continue
        after = np.empty((16, current.shape[1]), dtype=np.int64)
        after_count = 0
        after_table = np.full(32, -1, dtype=np.int64)
        if event[at] == OVER:
            available[what] = 0
            for i in range(count):
                row[:] = current[i]
                row[USED + column[what]] = 0
                after, after_count, after_table = _add(after, after_count, after_table, row)
            current, count = after, after_count
            at += 1
            continue

        slot = slot_of[what]
        bit = np.int64(1) << slot
        reads = np.array([s for s in range(SLOTS) if open_in[s] >= 0 and does[kind_of[open_in[s]]] == READS])
        changes = np.array([s for s in range(SLOTS) if open_in[s] >= 0 and does[kind_of[open_in[s]]] != READS])
        changes = changes[np.argsort(end[open_in[changes]])]
        read_bits = np.int64(0)
        for s in reads:
            read_bits |= np.int64(1) << s
        overwrite_bits = np.int64(0)
        for s in changes:
            if does[kind_of[open_in[s]]] == OVERWRITES:
                overwrite_bits |= np.int64(1) << s
        possible = np.flatnonzero(available)

        seen = np.empty((16, current.shape[1]), dtype=np.int64)
        seen_count = 0
        seen_table = np.full(32, -1, dtype=np.int64)
        for i in range(count):
            row[:] = current[i]
            if not row[PLACED] & bit:
                seen, seen_count, seen_table = _add(seen, seen_count, seen_table, row)
            if (row[PLACED] | row[FREE]) & bit:
                row[PLACED] &= ~bit
                row[FREE] &= ~bit
                after, after_count, after_table = _add(after, after_count, after_table, row)
        now = explored
        i = 0
        while i < seen_count:
            now += 1
            if now > limit:
                return LIMIT, at, current[:count].copy(), now, 0, trail, nodes, quiet
            before[:] = seen[i]
            for c in range(len(changes) + len(possible)):
                if c < len(changes):
                    placed = np.int64(1) << changes[c]
                    kind = kind_of[open_in[changes[c]]]
                    # Of equal operations the one that ends first goes first: they are interchangeable.
                    if before[PLACED] & placed or tried[kind] == now:
                        continue
                    tried[kind] = now
                else:
                    placed = np.int64(0)
                    kind = possible[c - len(changes)]
                    if before[USED + column[kind]] >= available[kind]:
                        continue
                entry = before[STATE] * kinds + kind
                found = find(table, entry)
                if table[found, 0] < 0:
                    asked = _ask(missing, asked, entry)
                    continue
                for t in range(table[found, 1], table[found, 1] + table[found, 2]):
                    if placed == 0 and targets[t] == before[STATE] and does[kind] != OVERWRITES:
                        continue
                    row[:] = before
                    row[STATE] = targets[t]
                    row[PLACED] |= placed
                    if does[kind] == OVERWRITES:
                        # Right before an overwrite, every open overwrite can take effect unseen.
                        row[FREE] = overwrite_bits & ~row[PLACED]
                    if placed == 0:
                        row[USED + column[kind]] += 1
                        trail, nodes = _record(trail, nodes, row, -1 - kind)
                    else:
                        trail, nodes = _record(trail, nodes, row, open_in[changes[c]])
                    asked, trail, nodes = _with_reads(
                        row, reads, open_in, kind_of, kinds, table, missing, asked, trail, nodes
                    )
                    if not row[PLACED] & bit:
                        seen, seen_count, seen_table = _add(seen, seen_count, seen_table, row)
                    # Where it had been free already, this row can still be reached later.
                    if (row[PLACED] | (row[FREE] & ~before[FREE])) & bit:
                        row[PLACED] &= ~bit
                        row[FREE] &= ~bit
                        after, after_count, after_table = _add(after, after_count, after_table, row)
            i += 1
            if asked == len(missing):
                break
        if asked:
            return MISSING, at, current[:count].copy(), explored, asked, trail, nodes, quiet
        explored = now
        if after_count == 0:
            return STUCK, at, current[:count].copy(), explored, 0, trail, nodes, quiet
        open_in[slot] = -1
        if 1 < after_count <= COMPARED:
            after_count = _without_superfluous(after, after_count, read_bits & ~bit, overwrite_bits & ~bit)
        current, count = after, after_count
        at += 1
    return DONE, at, current[:count].copy(), explored, 0, trail, nodes, quiet
