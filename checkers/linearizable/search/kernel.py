"""The search itself: integers in, integers out, so that one compiled kernel serves every model.

A configuration is a row: [state, node, unread, placed…, free…, used…]. `placed` and `free` are bit sets over the
slots of open definite operations, as many words each as the slots take; `used` counts, by column, how many of some
equal indefinite operations took effect; and `node` is where the row's history lies in the trail (no part of its
identity). States and kinds of operations are numbers; what a kind does to a state is looked up in a table that its
caller fills on demand: `advance` stops with MISSING where it needs an entry that nobody has computed yet, having
changed nothing about the event at which it stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled

INVOKED, COMPLETED, MAY_HAPPEN, OVER = range(4)
"""Events. OVER: equal indefinite operations do not matter any more."""

DONE, STUCK, LIMIT, FULL, MISSING, WIDE = range(6)
"""How `advance` ended. LIMIT: too much was explored; FULL: there is no room for more. WIDE: there are more
configurations than it may keep, and it must not leave any out."""

OTHER, READS, OVERWRITES = range(3)
"""What a kind does: READS never changes a state; OVERWRITES is always possible and gives the same state from any."""

STATE, NODE, UNREAD, PLACED = range(4)
"""Columns of a configuration: behind the words of PLACED are those of free, and behind these the counts of used.
UNREAD: 1 if an indefinite operation took effect last, and no read needed it; between events it is 0."""

BITS = 64
"""Slots in a word."""

UNCOUNTED = -1
"""The column of an indefinite kind of which there is no end: it may take effect again and again."""

ASKED = 65_536
"""At most so many missing entries are asked for at once, some of them again and again."""

COMPARED = 1_024
"""With at most so many similar ones a configuration is compared, to see whether they make it superfluous."""

PATIENCE = 4
"""An event may explore so many times the configurations that are kept, before those that are not needed are left."""

DESPAIR = 16
"""And so many times that while nothing has been found."""


class Timeline(NamedTuple):
    """What happens, in order, and to whom."""

    event: Int64
    subject: Int64
    """By event: an operation, or for MAY_HAPPEN and OVER a kind."""
    slot_of: Int64
    """By operation; -1 if indefinite."""
    kind_of: Int64
    end: Int64
    does: Int64
    """By kind."""
    column: Int64
    """By kind: where its uses are counted, or UNCOUNTED."""


class Moves(NamedTuple):
    """What kinds do to states: an open hash table of entry, first target and number of targets."""

    table: Int64
    targets: Int64
    missing: Int64
    """Room for the entries that are asked for."""


class Present(NamedTuple):
    """What can take effect at some event; changed in place."""

    open_in: Int64
    """By slot the operation in it, or -1."""
    available: Int64
    """By kind how many indefinite operations of it began."""


@compiled
def _mixed(x: int) -> int:
    h = np.uint64(x) * np.uint64(0x9E3779B97F4A7C15)
    return int((h ^ (h >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@compiled
def _hash(row: Int64) -> int:
    h = np.uint64(1469598103934665603) ^ np.uint64(row[STATE])
    for c in range(UNREAD, len(row)):
        h = (h ^ np.uint64(row[c])) * np.uint64(1099511628211)
        h ^= h >> np.uint64(29)
    return int(h & np.uint64(0x7FFFFFFFFFFFFFFF))


@compiled
def _add(rows: Int64, count: int, table: Int64, row: Int64) -> tuple[Int64, int, Int64]:
    """Add a row to a set: rows[:count], found by an open hash table of positions. Both grow as needed."""
    mask = len(table) - 1
    at = _hash(row) & mask
    while table[at] >= 0:
        same = rows[table[at], STATE] == row[STATE]
        for c in range(UNREAD, len(row)):
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
def _has(row: Int64, base: int, slot: int) -> bool:
    return bool((row[base + slot // BITS] >> np.int64(slot % BITS)) & 1)


@compiled
def _set(row: Int64, base: int, slot: int) -> None:
    row[base + slot // BITS] |= np.int64(1) << np.int64(slot % BITS)


@compiled
def _clear(row: Int64, base: int, slot: int) -> None:
    row[base + slot // BITS] &= ~(np.int64(1) << np.int64(slot % BITS))


@compiled
def _set_of(slots: Int64, words: int) -> Int64:
    bits = np.zeros(words, dtype=np.int64)
    for slot in slots:
        _set(bits, 0, slot)
    return bits


@compiled
def _is_superfluous(one: Int64, other: Int64, words: int, reads: Int64, overwrites: Int64) -> bool:
    """The other, which is in the same state, can do all that the one can: it has placed the same operations, or a read
    more; what it owes as an overwrite is free, or as in the other; and it has used no more indefinite operations."""
    for w in range(words):
        placed = one[PLACED + w] ^ other[PLACED + w]
        if placed & ~(reads[w] | overwrites[w]) or placed & one[PLACED + w] & reads[w]:
            return False
        owed = overwrites[w] & ~other[PLACED + words + w]
        if (one[PLACED + words + w] | placed) & owed:
            return False
    return bool(np.all(other[PLACED + 2 * words :] <= one[PLACED + 2 * words :]))


@compiled
def _ones(bits: int) -> int:
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@compiled
def _costs(rows: Int64, count: int, words: int, hard: Int64, overwrites: Int64) -> Int64:
    """Less for what is more promising, and always less for what makes another superfluous: few indefinite operations
    used, few owed that do not fit everywhere, and most overwrites left to choose from."""
    cost = np.zeros(count, dtype=np.int64)
    for i in range(count):
        for c in range(PLACED + 2 * words, rows.shape[1]):
            cost[i] += 4 * rows[i, c]
        for w in range(words):
            owed = overwrites[w] & ~rows[i, PLACED + words + w]
            cost[i] += 2 * _ones(hard[w] & ~rows[i, PLACED + w]) + _ones(owed) + _ones(owed & rows[i, PLACED + w])
    return cost


@compiled
def _in_turn(rows: Int64, order: Int64) -> Int64:
    """The same order, but first the best of each state, then the second best of each, …"""
    states = rows[:, STATE][order]
    by_state = np.argsort(states, kind="mergesort")
    rank = np.zeros(len(order), dtype=np.int64)
    for n in range(1, len(order)):
        if states[by_state[n]] == states[by_state[n - 1]]:
            rank[by_state[n]] = rank[by_state[n - 1]] + 1
    return order[np.argsort(rank, kind="mergesort")]


@compiled
def _without_superfluous(
    rows: Int64, count: int, words: int, reads: Int64, others: Int64, overwrites: Int64, most: int
) -> Int64:
    """Without configurations that another one makes superfluous; if there are more, the `most` promising of them."""
    order = np.argsort(_costs(rows, count, words, reads | others, overwrites), kind="mergesort")
    if count > most:
        order = _in_turn(rows, order)
    size = 4
    while size < 2 * count:
        size *= 2
    last_like = np.full(size, -1, dtype=np.int64)
    like = np.empty(count, dtype=np.int64)
    found = np.empty((min(count, most), rows.shape[1]), dtype=np.int64)
    kept = 0
    for i in order:
        if kept == most:
            break
        # Only configurations of this key can make one another superfluous.
        key = _mixed(rows[i, STATE])
        for w in range(words):
            key = _mixed(key ^ (rows[i, PLACED + w] & others[w]))
        key &= size - 1
        at = last_like[key]
        compared = 0
        while at >= 0 and compared < COMPARED:
            if found[at, STATE] == rows[i, STATE] and _is_superfluous(rows[i], found[at], words, reads, overwrites):
                break
            at = like[at]
            compared += 1
        if at < 0 or compared == COMPARED:
            found[kept] = rows[i]
            like[kept] = last_like[key]
            last_like[key] = kept
            kept += 1
    return found[:kept]


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
    row: Int64, reads: Int64, line: Timeline, present: Present, moves: Moves, asked: int, trail: Int64, nodes: int
) -> tuple[int, Int64, int]:
    """Let each open read that fits take effect: it changes nothing, so waiting wins nothing."""
    for slot in reads:
        if _has(row, PLACED, slot):
            continue
        what = present.open_in[slot]
        entry = row[STATE] * len(line.does) + line.kind_of[what]
        at = find(moves.table, entry)
        if moves.table[at, 0] < 0:
            asked = _ask(moves.missing, asked, entry)
        elif moves.table[at, 2] > 0:
            _set(row, PLACED, slot)
            row[UNREAD] = 0
            trail, nodes = _record(trail, nodes, row, what)
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
    line: Timeline,
    moves: Moves,
    present: Present,
    words: int,
    until: int,
    at: int,
    current: Int64,
    explored: int,
    limit: int,
    room: int,
    kept: int,
    cuts: bool,
    trail: Int64,
    nodes: int,
) -> tuple[int, int, Int64, int, int, Int64, int]:
    """Go over the events from `at` on, up to `until`, or until something stops it.

    At most `limit` configurations are explored in all, and at most `room` are held at once, or steps in the trail.
    Where an event leaves more than `kept`, only the most promising ones are followed if it `cuts`.

    Returns how it ended, the event there, the configurations before that event, how many were explored so far, how
    many entries are missing, and the trail with its length.
    """
    kinds = len(line.does)
    table, targets, missing = moves.table, moves.targets, moves.missing
    open_in, available = present.open_in, present.available
    free, used = PLACED + words, PLACED + 2 * words
    count = len(current)
    row = np.zeros(current.shape[1], dtype=np.int64)
    before = np.zeros(current.shape[1], dtype=np.int64)
    tried = np.full(kinds, -1, dtype=np.int64)
    while at < until:
        what = line.subject[at]
        asked, noted = 0, nodes
        if line.event[at] == MAY_HAPPEN:
            available[what] += 1
            at += 1
            continue
        if line.event[at] == INVOKED:
            kind = line.kind_of[what]
            if line.does[kind] == READS:
                for i in range(count):
                    entry = current[i, STATE] * kinds + kind
                    if table[find(table, entry), 0] < 0:
                        asked = _ask(missing, asked, entry)
                if asked:
                    return MISSING, at, current[:count].copy(), explored, asked, trail, noted
                for i in range(count):
                    if table[find(table, current[i, STATE] * kinds + kind), 2] > 0:
                        _set(current[i], PLACED, line.slot_of[what])
                        trail, nodes = _record(trail, nodes, current[i], what)
            open_in[line.slot_of[what]] = what
            at += 1
            continue
        after = np.empty((16, current.shape[1]), dtype=np.int64)
        after_count = 0
        after_table = np.full(32, -1, dtype=np.int64)
        if line.event[at] == OVER:
            available[what] = 0
            for i in range(count):
                row[:] = current[i]
                if line.column[what] != UNCOUNTED:
                    row[used + line.column[what]] = 0
                after, after_count, after_table = _add(after, after_count, after_table, row)
            current, count = after, after_count
            at += 1
            continue

        slot = line.slot_of[what]
        is_open = np.flatnonzero(open_in >= 0)
        does = line.does[line.kind_of[open_in[is_open]]]
        reads = is_open[does == READS]
        changes = is_open[does != READS]
        changes = changes[np.argsort(line.end[open_in[changes]])]
        overwrites = _set_of(is_open[does == OVERWRITES], words)
        possible = np.flatnonzero(available)

        seen = np.empty((16, current.shape[1]), dtype=np.int64)
        seen_count = 0
        seen_table = np.full(32, -1, dtype=np.int64)
        for i in range(count):
            row[:] = current[i]
            if not _has(row, PLACED, slot):
                seen, seen_count, seen_table = _add(seen, seen_count, seen_table, row)
            if _has(row, PLACED, slot) or _has(row, free, slot):
                _clear(row, PLACED, slot)
                _clear(row, free, slot)
                after, after_count, after_table = _add(after, after_count, after_table, row)
        now = explored
        i = 0
        while i < seen_count:
            patience = PATIENCE * kept * (1 if after_count else DESPAIR)
            if now - explored >= patience:
                if not cuts and asked == 0:
                    return WIDE, at, current[:count].copy(), now, 0, trail, noted
                break
            now += 1
            if now > limit:
                return LIMIT, at, current[:count].copy(), now, 0, trail, noted
            if seen_count + after_count > room or nodes > room:
                return FULL, at, current[:count].copy(), now, 0, trail, noted
            before[:] = seen[i]
            for c in range(len(changes) + len(possible)):
                is_definite = c < len(changes)
                if is_definite:
                    kind = line.kind_of[open_in[changes[c]]]
                    # Of equal operations the one that ends first goes first: they are interchangeable.
                    if _has(before, PLACED, changes[c]) or tried[kind] == now:
                        continue
                    tried[kind] = now
                else:
                    kind = possible[c - len(changes)]
                    column = line.column[kind]
                    if column != UNCOUNTED and before[used + column] >= available[kind]:
                        continue
                overwriting = line.does[kind] == OVERWRITES
                if overwriting and before[UNREAD]:
                    # What nobody needs between two changes was of no use.
                    continue
                entry = before[STATE] * kinds + kind
                found = find(table, entry)
                if table[found, 0] < 0:
                    asked = _ask(missing, asked, entry)
                    continue
                for t in range(table[found, 1], table[found, 1] + table[found, 2]):
                    if not is_definite and targets[t] == before[STATE] and not overwriting:
                        continue
                    row[:] = before
                    row[STATE] = targets[t]
                    row[UNREAD] = 0 if is_definite else 1
                    if is_definite:
                        _set(row, PLACED, changes[c])
                    if overwriting:
                        # Right before an overwrite, every open overwrite can take effect unseen.
                        for w in range(words):
                            row[free + w] = overwrites[w] & ~row[PLACED + w]
                    if is_definite:
                        trail, nodes = _record(trail, nodes, row, open_in[changes[c]])
                    else:
                        if line.column[kind] != UNCOUNTED:
                            row[used + line.column[kind]] += 1
                        trail, nodes = _record(trail, nodes, row, -1 - kind)
                    asked, trail, nodes = _with_reads(row, reads, line, present, moves, asked, trail, nodes)
                    if not _has(row, PLACED, slot):
                        seen, seen_count, seen_table = _add(seen, seen_count, seen_table, row)
                    # Where it had been free already, this row can still be reached later; as can one that used an
                    # indefinite operation which nobody needed yet.
                    done = _has(row, PLACED, slot) or (_has(row, free, slot) and not _has(before, free, slot))
                    if done and not row[UNREAD]:
                        _clear(row, PLACED, slot)
                        _clear(row, free, slot)
                        after, after_count, after_table = _add(after, after_count, after_table, row)
            i += 1
            if asked == len(missing):
                break
        if asked:
            # What is explored again when it is known counts again: it takes as long as the first time.
            return MISSING, at, current[:count].copy(), now, asked, trail, noted
        if after_count == 0:
            return STUCK, at, current[:count].copy(), now, 0, trail, nodes
        if after_count > 1:
            _clear(overwrites, 0, slot)
            owed_reads = _set_of(reads, words)
            _clear(owed_reads, 0, slot)
            others = _set_of(is_open[does == OTHER], words)
            _clear(others, 0, slot)
            after = _without_superfluous(after, after_count, words, owed_reads, others, overwrites, kept + 1)
            after_count = min(len(after), kept)
            if len(after) > kept and not cuts:
                return WIDE, at, current[:count].copy(), now, 0, trail, noted
        explored = now
        open_in[slot] = -1
        current, count = after, after_count
        at += 1
    return DONE, at, current[:count].copy(), explored, 0, trail, nodes
