"""What pram forces: a session sees what it wrote and read before, and what those it has read from had written before
in their sessions.

What a session sees only grows, so sessions are taken one after the other. Of each key there is a list of versions that
the session sees: whatever it reads of the key comes behind all of them, and stands for them from then on. Of a session
that it has read from it learns what it did not know yet, each transaction once.

Cost: for each session the writes that it sees, and those are at worst all; but no more than that, however many
sessions there are that it never hears of.
"""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.isolation.weak.accesses import NOBODY, Accesses, longer, write_of
from checkers.transactions.isolation.weak.precedence import Forced
from harness.compiled import compiled


def pipelined(accesses: Accesses) -> Forced:
    """Reads and sessions must have an order."""
    rows = accesses.committed
    source, target = _pipelined(
        rows.first,
        rows.key,
        rows.writer,
        rows.session,
        accesses.definite,
        accesses.member_first,
        accesses.member,
        accesses.written_first,
        accesses.written,
        accesses.keys,
    )
    return Forced(source=source, target=target)


@compiled
def _by_session(
    definite: Bool, member_first: Int64, member: Int32, written_first: Int64, written: Int32
) -> tuple[Int64, Int32, Int32, Int32]:
    """Writes of definite transactions by session and turn, behind them all others: where those of each session begin;
    key and transaction of each; and where each write is."""
    sessions = len(member_first) - 1
    first = np.zeros(sessions + 1, dtype=np.int64)
    key = np.empty(len(written), dtype=np.int32)
    owner = np.empty(len(written), dtype=np.int32)
    place_of = np.empty(len(written), dtype=np.int32)
    count = 0
    for wanted in (True, False):
        for s in range(sessions):
            for m in range(member_first[s], member_first[s + 1]):
                t = member[m]
                if definite[t] == wanted:
                    for j in range(written_first[t], written_first[t + 1]):
                        key[count], owner[count], place_of[j] = written[j], t, count
                        count += 1
            if wanted:
                first[s + 1] = count
    return first, key, owner, place_of


@compiled
def _pipelined(
    first: Int64,
    key: Int32,
    writer: Int32,
    session: Int32,
    definite: Bool,
    member_first: Int64,
    member: Int32,
    written_first: Int64,
    written: Int32,
    keys: int,
) -> tuple[Int32, Int32]:
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count = 0
    block_first, write_key, owner, place_of = _by_session(definite, member_first, member, written_first, written)
    # What a session knows: the writes of each session it has met up to one; of each key a list of writes, the newest
    # first.
    met = np.full(len(member_first) - 1, NOBODY, dtype=np.int32)
    known = np.zeros(len(member_first) - 1, dtype=np.int64)
    listed = np.full(keys, NOBODY, dtype=np.int32)
    head = np.full(keys, NOBODY, dtype=np.int32)
    write, older = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    gathered = np.full(keys, NOBODY, dtype=np.int32)
    """Of each key the last transaction of which a read stands for what was known before."""
    overtaken = np.full(len(written), NOBODY, dtype=np.int32)
    """The first write of the key that each one has been put before."""
    reached = np.zeros(len(written), dtype=np.int64)
    """The last read that each write was found to come before."""
    reads = 0
    for s in range(len(member_first) - 1):
        used = 0
        for m in range(member_first[s], member_first[s + 1]):
            t = member[m]
            # Its reads are of what was written before those that it reads from; these themselves, and t, are known to
            # whatever follows in its session.
            for step in range(2):
                for i in range(first[t], first[t + 1] + step):
                    w = writer[i] if i < first[t + 1] else t
                    if w <= 0:
                        continue
                    q = session[w]
                    if met[q] != s:
                        met[q], known[q] = s, block_first[q]
                    lowest, p = block_first[q], known[q]
                    last = w if step == 1 and definite[w] else w - 1
                    while p < block_first[q + 1] and owner[p] <= last:
                        k = write_key[p]
                        if listed[k] != s:
                            listed[k], head[k] = s, NOBODY
                        if head[k] != NOBODY and lowest <= write[head[k]] < block_first[q + 1]:
                            # Sessions are in order: the last one stands for those before.
                            write[head[k]] = max(write[head[k]], p)
                        else:
                            if used == len(write):
                                write, older = longer(write, used + 1), longer(older, used + 1)
                            write[used], older[used] = p, head[k]
                            head[k] = used
                            used += 1
                        p += 1
                    known[q] = p
                    if step == 1 and w != t and not definite[w]:
                        for j in range(written_first[w], written_first[w + 1]):
                            k = written[j]
                            if listed[k] != s:
                                listed[k], head[k] = s, NOBODY
                            if used == len(write):
                                write, older = longer(write, used + 1), longer(older, used + 1)
                            write[used], older[used] = place_of[j], head[k]
                            head[k] = used
                            used += 1
                if step == 1:
                    break
                for i in range(first[t], first[t + 1]):
                    w, k = writer[i], key[i]
                    if w == WRITES or listed[k] != s:
                        continue
                    read = place_of[write_of(w, k, written_first, written)] if w != INITIAL else NOBODY
                    reads += 1
                    if read != NOBODY:
                        reached[read] = reads
                    node = head[k]
                    while node != NOBODY:
                        p = write[node]
                        node = older[node]
                        if p == read:
                            continue
                        if overtaken[p] == NOBODY or reached[overtaken[p]] != reads:
                            source, target = longer(source, count + 1), longer(target, count + 1)
                            source[count], target[count] = owner[p], w
                            count += 1
                            if w == INITIAL:
                                return source[:count].copy(), target[:count].copy()
                            if overtaken[p] == NOBODY:
                                overtaken[p] = read
                        reached[p] = reads
                for i in range(first[t], first[t + 1]):
                    w, k = writer[i], key[i]
                    if w <= 0 or listed[k] != s:
                        continue
                    if gathered[k] != t:
                        gathered[k] = t
                        head[k] = NOBODY
                    if used == len(write):
                        write, older = longer(write, used + 1), longer(older, used + 1)
                    write[used] = place_of[write_of(w, k, written_first, written)]
                    older[used] = head[k]
                    head[k] = used
                    used += 1
    return source[:count].copy(), target[:count].copy()
