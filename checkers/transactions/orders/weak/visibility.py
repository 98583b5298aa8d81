"""What causal consistency forces: to see a transaction is to see its session before it, and all that it has seen.

Transactions are taken in an order of reads and sessions. Each has a clock, which says how much of each chain it sees. A
chain is one session, or several, each of which began by seeing the one before it to its end. So many short sessions, as
crashed clients leave them, make few chains. Only transactions that others will still see keep their clocks, and they
share a clock as long as they see the same. If clocks exceed MAX_CLOCK_CELLS, chains are taken in several rounds.

A transaction that only its own session ever sees has no place in a chain: no other session could take over from there.

For each read the newest visible versions of its key in each session are put before the one that was read. Versions are
stamped in the order in which they are listed, and a version that was read has a watermark: all versions of its key with
a lower stamp come before it. A read that sees it looks at no version below its watermark. So in a working store a read
does not look at all chains, but only at versions written at about the time of the one that it reads. A version that
hardly any transaction sees would hold the watermark down. It is deferred to a list of its own, which every read of the
key looks at, until one of them sees the version.

Cost: n transactions times chains at worst, as in Moldrup, Pavlogiannis, "AWDIT: An Optimal Weak Database Isolation
Tester" (PLDI 2025); each search in a session's versions takes the logarithm of their number.
"""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int32
from checkers.kernels.gap_filling import require_room
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.orders.weak.accesses import Accesses, longer, write_of
from checkers.transactions.orders.weak.atomicity import own_writes
from checkers.transactions.orders.weak.precedence import Forced
from checkers.transactions.orders.weak.visibility_state import (
    Sight,
    State,
    begun,
    clocks_at_once,
    defer,
    link,
    readmit,
    sorted_writes,
    transactions_of,
    unlink,
)
from harness.compiled import compiled, inlined

MAX_CLOCK_CELLS = 1 << 27
"""How many entries of clocks, of 4 bytes, are held at once."""
MIN_CHAINS = 16
"""How many chains a round has at least, whatever its clocks need."""
DEFER_AFTER = 64
"""A version is deferred when a transaction does not see it but sees one whose stamp is higher by more than this."""


def visible(accesses: Accesses, order: Int32) -> Forced:
    """The edges that causal consistency forces. `order` has all transactions, each behind those that it reads from and
    those before it in its session."""
    transactions = transactions_of(accesses, order)
    rows = clocks_at_once(transactions) + 2
    roots = transactions.public & ((accesses.before == NO_INDEX) | ~accesses.definite)
    columns = max(min(int(roots.sum()), MAX_CLOCK_CELLS // rows), MIN_CHAINS)
    writes = sorted_writes(transactions, accesses.member, accesses.committed.session, accesses.keys)
    turn = np.zeros(len(accesses), dtype=np.int32)
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count, waiting, round_ = 0, True, 0
    while waiting:
        round_ += 1
        state = begun(transactions, writes, turn, rows, columns, accesses.keys, DEFER_AFTER)
        source, target, count, waiting = _visible(state, round_, source, target, count)
    private = own_writes(accesses)
    private = private.part(~transactions.public[private.source])
    return Forced(source=source[:count], target=target[:count]) + private


@compiled
def _visible(state: State, round_: int, source: Int32, target: Int32, count: int) -> tuple[Int32, Int32, int, bool]:
    """The edges so far and those of one more round, how many they are, and whether chains are left for another one.

    session A:  T1 writes x = 1;  T2 writes x = 2, y = 1          session B:  T3 reads y = 1;  T4 reads x = 1

    T1 and T2 are places 1 and 2 of a chain. T3 reads from T2: its clock says 2 of that chain. T4 sees the same, so
    of the versions of x the newest one that it sees is that of T2; it reads that of T1:  T2 before T1
    """
    transactions, keys = state.transactions, state.keys
    waiting = False
    for t in transactions.order:
        if t == INITIAL:
            continue
        own, own_place = _own_chain(state, t)
        row, is_mine = _clock_of(state, t, own, own_place)
        sight = Sight(row, own, own_place)
        for i in range(transactions.first[t], transactions.first[t + 1]):
            if transactions.writer[i] == WRITES:
                continue
            known = count
            room = count + keys.listed[transactions.key[i]]
            if room > len(source):
                source, target = longer(source, room), longer(target, room)
            count = _read(state, sight, t, i, source, target, count)
            if transactions.writer[i] == INITIAL and count > known:
                return source, target, count, False
        state.clocks.row_of[t] = row
        waiting |= _put_on_chain(state, sight, t, round_)
        _release(state, sight, t, is_mine)
    return source, target, count, waiting


@inlined
def _own_chain(state: State, t: int) -> tuple[int, int]:
    p = state.transactions.before[t]
    passed = state.chains.last[p] if p != NO_INDEX else NO_INDEX
    if passed == NO_INDEX:
        return NO_INDEX, 0
    own = state.chains.chain[passed]
    return own, state.chains.place[passed] if own != NO_INDEX else 0


@inlined
def _clock_of(state: State, t: int, own: int, own_place: int) -> tuple[int, bool]:
    """(the row of t's clock, which has what its session saw and what the transactions that it reads from saw; whether
    no other transaction will need that row)."""
    transactions, clocks, chains = state.transactions, state.clocks, state.chains
    p = transactions.before[t]
    row = clocks.row_of[p] if p != NO_INDEX else 0
    is_mine = row != 0 and clocks.holders[row] == 1 and clocks.uses_left[p] == 1
    for i in range(transactions.first[t], transactions.first[t + 1]):
        w = transactions.writer[i]
        if w <= 0:
            continue
        c, least, theirs = chains.chain[w], chains.place[w], clocks.row_of[w]
        if c != NO_INDEX and (clocks.clock[row, c] >= least or (c == own and own_place >= least)):
            continue
        if c == NO_INDEX and theirs in (row, 0):
            continue
        if not is_mine:
            row, is_mine = _copied(state, row), True
        if theirs != 0:
            for j in range(chains.used[0]):
                clocks.clock[row, j] = max(clocks.clock[row, j], clocks.clock[theirs, j])
        if c != NO_INDEX:
            clocks.clock[row, c] = max(clocks.clock[row, c], least)
    return row, is_mine


@inlined
def _copied(state: State, row: int) -> int:
    """A row with a copy of this clock."""
    clocks = state.clocks
    require_room(0, clocks.free_count[0])
    clocks.free_count[0] -= 1
    fresh = clocks.free[clocks.free_count[0]]
    for j in range(state.chains.used[0]):
        clocks.clock[fresh, j] = clocks.clock[row, j]
    clocks.highest[0] = max(clocks.highest[0], fresh)
    return int(fresh)


@inlined
def _read(state: State, sight: Sight, t: int, i: int, source: Int32, target: Int32, count: int) -> int:
    """Puts the versions that t sees before the one that it reads in operation i. Returns how many edges there are then.
    An edge to INITIAL, which is a contradiction, is the last one."""
    transactions, keys, versions, clock = state.transactions, state.keys, state.versions, state.clocks.clock
    w, k = transactions.writer[i], transactions.key[i]
    write = write_of(w, k, transactions.written_first, transactions.written) if w != INITIAL else NO_INDEX
    read = state.writes.entry_of[write] if write != NO_INDEX else NO_INDEX
    reads = keys.reads[0] + 1
    keys.reads[0] = reads
    watermark, lowest_missed, defer_below = 0, keys.stamps[k], 0
    if read != NO_INDEX:
        versions[read].last_read = reads
        watermark = versions[read].watermark
        defer_below = versions[read].stamp - state.defer_after if state.chains.chain[w] != NO_INDEX else 0
    head, next_head = keys.deferred[k], keys.newest[k]
    while head != NO_INDEX or next_head != NO_INDEX:
        if head == NO_INDEX:
            head, next_head = next_head, NO_INDEX
        if not versions[head].is_deferred and versions[head].stamp < watermark:
            break
        following = versions[head].older
        seen, missed = _newest_seen(state, sight, head)
        if seen != head:
            if not versions[head].is_deferred and versions[head].stamp < defer_below:
                defer(keys, versions, k, head)
            if not versions[head].is_deferred:
                lowest_missed = min(lowest_missed, max(versions[missed].stamp, versions[head].least_stamp))
        if seen != NO_INDEX:
            if seen != read:
                successor = versions[seen].successor
                is_known = successor != NO_INDEX and versions[successor].last_read == reads
                if not is_known and clock[state.clocks.row_of[w], versions[seen].chain] < versions[seen].place:
                    source[count], target[count] = state.writes.owner[seen], w
                    count += 1
                    if w == INITIAL:
                        return count
                    if successor == NO_INDEX:
                        versions[seen].successor = read
                versions[seen].last_read = reads
            watermark = max(watermark, versions[seen].watermark)
        if versions[head].is_deferred and seen == head:
            readmit(keys, versions, k, head)
        head = following
    watermark = max(watermark, lowest_missed)
    if read != NO_INDEX:
        versions[read].watermark = watermark
    keys.last_reader[k], keys.last_watermark[k] = t, watermark
    return count


@inlined
def _newest_seen(state: State, sight: Sight, head: int) -> tuple[int, int]:
    """Among a session's versions up to `head`, the newest one that is seen, and the oldest one that is not; each may be
    NO_INDEX."""
    versions, previous, jump = state.versions, state.writes.previous, state.writes.jump
    chain = versions[head].chain
    sees = max(state.clocks.clock[sight.row, chain], sight.own_place if chain == sight.own else 0)
    if versions[head].place <= sees:
        return head, NO_INDEX
    missed, seen = head, previous[head]
    while seen != NO_INDEX and versions[seen].place > sees:
        back = jump[missed]
        missed = back if versions[back].place > sees else seen
        seen = previous[missed]
    return seen, missed


@inlined
def _put_on_chain(state: State, sight: Sight, t: int, round_: int) -> bool:
    """Puts t, if others will see it, on its session's chain or on another one. Returns whether it needs a chain and
    there is none left in this round."""
    transactions, chains = state.transactions, state.chains
    p = transactions.before[t]
    if transactions.public[t] and chains.turn[t] in (0, round_):
        if p != NO_INDEX and transactions.definite[t]:
            if sight.own != NO_INDEX:
                chains.chain[t], chains.place[t] = sight.own, sight.own_place + 1
        elif chains.turn[t] == 0:
            taken = _ended_chain(state, sight)
            if taken == NO_INDEX and chains.used[0] < len(chains.length):
                taken = _new_chain(state)
            if taken != NO_INDEX:
                chains.chain[t], chains.place[t] = taken, chains.length[taken] + 1
    chain = chains.chain[t]
    if chain == NO_INDEX:
        chains.last[t] = chains.last[p] if p != NO_INDEX else NO_INDEX
        return bool(transactions.public[t] and chains.turn[t] == 0)
    chains.last[t], chains.turn[t], chains.length[chain] = t, round_, chains.place[t]
    _list_versions(state, t)
    # The last transaction of a session that others will see leaves the chain to them.
    if not chains.followed[t]:
        chains.ended[chains.ended_count[0]] = chain
        chains.ended_count[0] += 1
    return False


@inlined
def _ended_chain(state: State, sight: Sight) -> int:
    """Takes over an ended chain that is seen to its end; NO_INDEX if there is none."""
    chains, clock = state.chains, state.clocks.clock
    for j in range(chains.ended_count[0]):
        c = chains.ended[j]
        if clock[sight.row, c] >= chains.length[c] or (c == sight.own and sight.own_place >= chains.length[c]):
            chains.ended_count[0] -= 1
            chains.ended[j] = chains.ended[chains.ended_count[0]]
            return int(c)
    return NO_INDEX


@inlined
def _new_chain(state: State) -> int:
    """A new chain, of which no clock has seen anything."""
    taken = state.chains.used[0]
    state.chains.used[0] = taken + 1
    for row in range(state.clocks.highest[0] + 1):
        state.clocks.clock[row, taken] = 0
    return int(taken)


@inlined
def _list_versions(state: State, t: int) -> None:
    """Puts what t wrote into the lists, in place of its session's earlier versions."""
    transactions, chains, keys, versions = state.transactions, state.chains, state.keys, state.versions
    for j in range(transactions.written_first[t], transactions.written_first[t + 1]):
        k, entry = transactions.written[j], state.writes.entry_of[j]
        before = state.writes.previous[entry]
        keys.listed[k] += before == NO_INDEX
        if before != NO_INDEX:
            was_deferred = versions[before].is_deferred
            versions[entry].watermark = max(versions[entry].watermark, versions[before].watermark)
            versions[entry].least_stamp = keys.stamps[k] if was_deferred else versions[before].least_stamp
            unlink(versions, keys.deferred if was_deferred else keys.newest, k, before)
        if keys.last_reader[k] == t:
            versions[entry].watermark = max(versions[entry].watermark, keys.last_watermark[k])
        versions[entry].chain, versions[entry].place = chains.chain[t], chains.place[t]
        versions[entry].stamp = keys.stamps[k]
        keys.stamps[k] += 1
        link(versions, keys.newest, k, entry)


@inlined
def _release(state: State, sight: Sight, t: int, is_mine: bool) -> None:
    """Gives up the clocks that will not be needed any more."""
    transactions, clocks = state.transactions, state.clocks
    p = transactions.before[t]
    if clocks.uses_left[t] > 0:
        clocks.holders[sight.row] += 1
    elif sight.row != 0 and is_mine and (p == NO_INDEX or sight.row != clocks.row_of[p]):
        _free(state, sight.row)
    for i in range(transactions.first[t] - 1, transactions.first[t + 1]):
        u = p if i < transactions.first[t] else transactions.writer[i]
        if u <= 0:
            continue
        clocks.uses_left[u] -= 1
        row = clocks.row_of[u]
        if clocks.uses_left[u] == 0 and row != 0:
            clocks.holders[row] -= 1
            if clocks.holders[row] == 0:
                _free(state, row)


@inlined
def _free(state: State, row: int) -> None:
    clocks = state.clocks
    clocks.free[clocks.free_count[0]] = row
    clocks.free_count[0] += 1
