"""What causal consistency forces: whoever sees a transaction sees its session before it, and all that it has seen.

Transactions are taken in an order of reads and sessions. Each has a clock: how much of each chain it sees. A chain is a
session, or several, each of which began by seeing the one before to its end: many short sessions, as crashed clients
leave them, make few chains. Only transactions that are still to be seen by others keep their clocks, and share
them until they differ. Where that is too much for CELLS, or chains are too many, they are taken in turns of so many.

What only its own session ever sees has no place in a chain, which nobody could take over from there.

For each read the newest visible versions of its key in each session are put before the one that was read. Of a version
that has been read it is kept below which mark all versions of the key come before it: there no search for others goes
on, once it is seen itself. So in a store that works a read looks at what was written while its writer's effects were
under way, and not at all chains. What hardly anybody ever sees would hold the mark down: it is put aside, and looked at
by every read of its key, until somebody sees it.

Cost: n transactions times chains at worst, as in Moldrup, Pavlogiannis, "AWDIT: An Optimal Weak Database Isolation
Tester" (PLDI 2025); each search in a session's versions takes the logarithm of their number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.isolation.weak.accesses import NOBODY, Accesses, longer, write_of
from checkers.transactions.isolation.weak.atomicity import own_writes
from checkers.transactions.isolation.weak.precedence import Forced
from harness.compiled import compiled

CELLS = 1 << 27
"""Entries of clocks that are held at once, of 4 bytes,"""
LEAST = 16
"""but at least so many chains."""
WINDOW = 64
"""A version that somebody does not see who sees one so much newer is put aside: hardly anybody ever will."""


VERSION = np.dtype(
    [
        (name, np.int32)
        for name in ("older", "newer", "chain", "place", "mark", "since", "floor", "previous", "further", "overtaken")
    ]
    + [("reached", np.int64), ("is_aside", np.bool_)],
    align=True,
)
"""Of a version: its neighbours in the list of its key; its writer's chain and place there; its mark, and as which one
lower marks of its session count; below which mark all versions of the key come before this one, or are this one, but
for those put aside; the version before it in its session, and one further back; the first version that it has been put
before; the last read to which it was found to come before what was read; whether it is put aside, where its session's
versions have no marks that count."""
Versions = npt.NDArray[np.void]


def visible(accesses: Accesses, order: Int32) -> Forced:
    """`order` has all transactions, each behind those it reads from and those before it in its session."""
    rows = accesses.committed
    uses = _uses(rows.writer, accesses.before)
    clocks = _clocks(order, rows.first, rows.writer, accesses.before, uses) + 2
    public = _public(rows.writer, accesses.before)
    roots = public & ((accesses.before == NOBODY) | ~accesses.definite)
    columns = max(min(int(roots.sum()), CELLS // clocks), LEAST)
    entry_of, owner, previous, further = _entries(
        order,
        accesses.member,
        accesses.written_first,
        accesses.written,
        rows.session,
        accesses.definite,
        accesses.keys,
    )
    turn = np.zeros(len(accesses), dtype=np.int32)
    """In which round the chain of each transaction is looked at, from 1; 0: not yet."""
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count, waiting, round_ = 0, True, 0
    while waiting:
        round_ += 1
        source, target, count, waiting = _visible(
            order,
            rows.first,
            rows.key,
            rows.writer,
            accesses.definite,
            accesses.before,
            uses,
            public,
            accesses.written_first,
            accesses.written,
            entry_of,
            owner,
            previous,
            further,
            turn,
            round_,
            clocks,
            columns,
            WINDOW,
            accesses.keys,
            source,
            target,
            count,
        )
    private = own_writes(accesses)
    private = private.part(~public[private.source])
    return Forced(source=source[:count], target=target[:count]) + private


@compiled
def _uses(writer: Int32, before: Int32) -> Int32:
    """How often each transaction's clock will be asked for: by those behind it in its session and those that read from
    it."""
    result = np.zeros(len(before), dtype=np.int32)
    for t in range(len(before)):
        if before[t] != NOBODY:
            result[before[t]] += 1
    for u in writer:
        if u > 0:
            result[u] += 1
    return result


@compiled
def _public(writer: Int32, before: Int32) -> Bool:
    """Seen by another session, be it by what came later in its own one."""
    result = np.zeros(len(before), dtype=np.bool_)
    for u in writer:
        if u > 0:
            result[u] = True
    for t in range(len(before) - 1, 0, -1):
        if result[t] and before[t] != NOBODY:
            result[before[t]] = True
    return result


@compiled
def _clocks(order: Int32, first: Int64, writer: Int32, before: Int32, uses: Int32) -> int:
    """How many transactions are still to be asked for their clocks, at the most crowded moment."""
    left = uses.copy()
    here = most = 0
    for t in order:
        here += left[t] > 0
        most = max(most, here)
        if before[t] != NOBODY:
            left[before[t]] -= 1
            here -= left[before[t]] == 0
        for i in range(first[t], first[t + 1]):
            if writer[i] > 0:
                left[writer[i]] -= 1
                here -= left[writer[i]] == 0
    return most


@compiled
def _entries(
    order: Int32, member: Int32, written_first: Int64, written: Int32, session: Int32, definite: Bool, keys: int
) -> tuple[Int32, Int32, Int32, Int32]:
    """Writes sorted by key and turn, so that those come across one after the other are close to each other in memory:
    the place of each write; the transaction at each place; the place of its session's version before, which is NOBODY
    for indefinite ones; and a place further back, such that each is found in few steps."""
    entry_of = np.empty(len(written), dtype=np.int32)
    owner = np.empty(len(written), dtype=np.int32)
    previous = np.full(len(written), NOBODY, dtype=np.int32)
    further = np.full(len(written), NOBODY, dtype=np.int32)
    depth = np.zeros(len(written), dtype=np.int32)
    key_first = np.zeros(keys + 1, dtype=np.int64)
    for k in written:
        key_first[k + 1] += 1
    key_first = np.cumsum(key_first)
    for t in order:
        for j in range(written_first[t], written_first[t + 1]):
            k = written[j]
            entry_of[j], owner[key_first[k]] = key_first[k], t
            key_first[k] += 1
    latest = np.full(keys, NOBODY, dtype=np.int32)
    for t in member:
        for j in range(written_first[t], written_first[t + 1]):
            if not definite[t]:
                continue
            entry = entry_of[j]
            p = latest[written[j]]
            latest[written[j]] = entry
            if p == NOBODY or session[owner[p]] != session[t]:
                continue
            q = further[p]
            previous[entry], depth[entry] = p, depth[p] + 1
            is_twin = q != NOBODY and further[q] != NOBODY and depth[p] - depth[q] == depth[q] - depth[further[q]]
            further[entry] = further[q] if is_twin else p
    return entry_of, owner, previous, further


@compiled
def _link(entry: int, top: Int32, key: int, versions: Versions) -> None:
    versions[entry].older, versions[entry].newer = top[key], NOBODY
    if top[key] != NOBODY:
        versions[top[key]].newer = entry
    top[key] = entry


@compiled
def _unlink(entry: int, top: Int32, key: int, versions: Versions) -> None:
    version = versions[entry]
    if version.newer != NOBODY:
        versions[version.newer].older = version.older
    else:
        top[key] = version.older
    if version.older != NOBODY:
        versions[version.older].newer = version.newer


@compiled
def _visible(
    order: Int32,
    first: Int64,
    key: Int32,
    writer: Int32,
    definite: Bool,
    before: Int32,
    uses: Int32,
    public: Bool,
    written_first: Int64,
    written: Int32,
    entry_of: Int32,
    owner: Int32,
    previous: Int32,
    further: Int32,
    turn: Int32,
    round_: int,
    clocks: int,
    columns: int,
    window: int,
    keys: int,
    source: Int32,
    target: Int32,
    count: int,
) -> tuple[Int32, Int32, int, bool]:
    """The edges so far and those of one more round, how many they are, and whether chains are left for another one."""
    transactions = len(first) - 1
    followed = np.zeros(transactions, dtype=np.bool_)
    """In its chain, for sure."""
    for t in range(transactions):
        if before[t] != NOBODY and definite[t] and public[t]:
            followed[before[t]] = True
    left = uses.copy()
    # Clocks: row 0 has seen nothing and is never given up.
    clock = np.empty((clocks, columns), dtype=np.int32)
    highest = 0
    holders = np.zeros(clocks, dtype=np.int32)
    holders[0] = 1
    free = np.arange(clocks - 1, 0, -1).astype(np.int32)
    free_count = clocks - 1
    row_of = np.zeros(transactions, dtype=np.int32)
    # Chains of this round: of each transaction its chain and its place there, from 1; of each chain its length once
    # nobody follows in its session.
    chain = np.full(transactions, NOBODY, dtype=np.int32)
    place = np.zeros(transactions, dtype=np.int32)
    last = np.full(transactions, NOBODY, dtype=np.int32)
    """Of its session the last transaction in a chain, itself included."""
    ended = np.empty(columns, dtype=np.int32)
    length = np.zeros(columns, dtype=np.int32)
    ended_count = used = 0
    waiting = False
    # Versions of each key, the newest one of each session, by the order in which they were come across.
    newest = np.full(keys, NOBODY, dtype=np.int32)
    marks = np.zeros(keys, dtype=np.int32)
    versions = np.zeros(len(owner), dtype=VERSION)
    for entry in range(len(owner)):
        versions[entry].previous, versions[entry].further = previous[entry], further[entry]
        versions[entry].overtaken = NOBODY
    aside = np.full(keys, NOBODY, dtype=np.int32)
    """Of each key the newest version put aside."""
    reads = 0
    reader = np.zeros(keys, dtype=np.int32)
    settled = np.zeros(keys, dtype=np.int32)
    """The floor of what the last reader of the key read."""
    for t in order:
        if t == INITIAL:
            continue
        p = before[t]
        row = row_of[p] if p != NOBODY else 0
        passed = last[p] if p != NOBODY else NOBODY
        own = chain[passed] if passed != NOBODY else NOBODY
        """A session's clock lags behind on its own chain, which saves a copy for each of its transactions."""
        own_place = place[passed] if passed != NOBODY else 0
        mine = row != 0 and holders[row] == 1 and left[p] == 1
        for i in range(first[t], first[t + 1]):
            w = writer[i]
            if w <= 0:
                continue
            c, least = chain[w], place[w]
            if c != NOBODY and (clock[row, c] >= least or (c == own and own_place >= least)):
                continue
            if c == NOBODY and (row_of[w] == row or row_of[w] == 0):
                continue
            if not mine:
                free_count -= 1
                fresh = free[free_count]
                clock[fresh, :used] = clock[row, :used]
                row, mine = fresh, True
                highest = max(highest, row)
            if row_of[w] != 0:
                ours, theirs = clock[row], clock[row_of[w]]
                for j in range(used):
                    ours[j] = max(ours[j], theirs[j])
            if c != NOBODY:
                clock[row, c] = max(clock[row, c], least)
        for i in range(first[t], first[t + 1]):
            w, k = writer[i], key[i]
            if w == WRITES:
                continue
            write = write_of(w, k, written_first, written) if w != INITIAL else NOBODY
            read = entry_of[write] if write != NOBODY else NOBODY
            reads += 1
            if read != NOBODY:
                versions[read].reached = reads
            stop = versions[read].floor if read != NOBODY else 0
            lowest = marks[k]
            old = versions[read].mark - window if read != NOBODY and chain[w] != NOBODY else 0
            head, next_head = aside[k], newest[k]
            while head != NOBODY or next_head != NOBODY:
                if head == NOBODY:
                    head, next_head = next_head, NOBODY
                if not versions[head].is_aside and versions[head].mark < stop:
                    break
                following = versions[head].older
                c = versions[head].chain
                sees = max(clock[row, c], own_place if c == own else 0)
                seen = head
                if versions[head].place > sees:
                    missed = head
                    seen = versions[head].previous
                    while seen != NOBODY and versions[seen].place > sees:
                        missed = versions[missed].further if versions[versions[missed].further].place > sees else seen
                        seen = versions[missed].previous
                    if not versions[head].is_aside and versions[head].mark < old:
                        _unlink(head, newest, k, versions)
                        _link(head, aside, k, versions)
                        versions[head].is_aside = True
                    if not versions[head].is_aside:
                        lowest = min(lowest, max(versions[missed].mark, versions[head].since))
                if seen != NOBODY:
                    if seen != read:
                        first_one = versions[seen].overtaken
                        told = first_one != NOBODY and versions[first_one].reached == reads
                        if not told and clock[row_of[w], versions[seen].chain] < versions[seen].place:
                            source, target = longer(source, count + 1), longer(target, count + 1)
                            source[count], target[count] = owner[seen], w
                            count += 1
                            if w == INITIAL:
                                return source, target, count, False
                            if versions[seen].overtaken == NOBODY:
                                versions[seen].overtaken = read
                        versions[seen].reached = reads
                    stop = max(stop, versions[seen].floor)
                if versions[head].is_aside and seen == head:
                    _unlink(head, aside, k, versions)
                    _link(head, newest, k, versions)
                    versions[head].is_aside = False
                    versions[head].mark = versions[head].since = marks[k]
                    marks[k] += 1
                head = following
            stop = max(stop, lowest)
            if read != NOBODY:
                versions[read].floor = stop
            reader[k], settled[k] = t, stop
        row_of[t] = row
        # The chain goes on, or another one begins.
        if public[t] and (turn[t] == 0 or turn[t] == round_):
            if p != NOBODY and definite[t]:
                if own != NOBODY:
                    chain[t], place[t] = own, own_place + 1
            elif turn[t] == 0:
                taken = NOBODY
                for j in range(ended_count):
                    c = ended[j]
                    if clock[row, c] >= length[c] or (c == own and own_place >= length[c]):
                        taken = c
                        ended_count -= 1
                        ended[j] = ended[ended_count]
                        break
                if taken == NOBODY and used < columns:
                    taken = used
                    used += 1
                    clock[: highest + 1, taken] = 0
                if taken != NOBODY:
                    chain[t], place[t] = taken, length[taken] + 1
        last[t] = t if chain[t] != NOBODY else passed
        if chain[t] != NOBODY:
            turn[t] = round_
            length[chain[t]] = place[t]
            for j in range(written_first[t], written_first[t + 1]):
                k, entry = written[j], entry_of[j]
                before_it = previous[entry]
                if before_it != NOBODY:
                    versions[entry].floor = max(versions[entry].floor, versions[before_it].floor)
                    versions[entry].since = marks[k] if versions[before_it].is_aside else versions[before_it].since
                    _unlink(before_it, aside if versions[before_it].is_aside else newest, k, versions)
                if reader[k] == t:
                    versions[entry].floor = max(versions[entry].floor, settled[k])
                versions[entry].chain, versions[entry].place = chain[t], place[t]
                versions[entry].mark = marks[k]
                marks[k] += 1
                _link(entry, newest, k, versions)
        elif public[t] and turn[t] == 0:
            waiting = True
        # Whoever is the last one of its session that others will see leaves the chain to them.
        if chain[t] != NOBODY and not followed[t]:
            ended[ended_count] = chain[t]
            ended_count += 1
        # Clocks that nobody will ask for any more.
        if left[t] > 0:
            holders[row] += 1
        elif row != 0 and mine and (p == NOBODY or row != row_of[p]):
            free[free_count] = row
            free_count += 1
        for i in range(first[t] - 1, first[t + 1]):
            u = p if i < first[t] else writer[i]
            if u <= 0:
                continue
            left[u] -= 1
            if left[u] == 0 and row_of[u] != 0:
                holders[row_of[u]] -= 1
                if holders[row_of[u]] == 0:
                    free[free_count] = row_of[u]
                    free_count += 1
    return source, target, count, waiting
