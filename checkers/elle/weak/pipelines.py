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

from checkers.elle.committed import INITIAL, WRITES
from checkers.elle.weak.accesses import NOBODY, Accesses, longer, write_of
from checkers.elle.weak.precedence import Forced
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.kernels.compiled import compiled


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
    owner = np.empty(len(written), dtype=np.int32)
    for t in range(len(first) - 1):
        owner[written_first[t] : written_first[t + 1]] = t
    # What a session knows: so many members of each session it has met; of each key a list of writes, the newest first.
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
                        met[q], known[q] = s, member_first[q]
                    while known[q] < member_first[q + 1] and member[known[q]] < w:
                        u = member[known[q]]
                        known[q] += 1
                        if definite[u]:
                            room = used + written_first[u + 1] - written_first[u]
                            write, older = longer(write, room), longer(older, room)
                            for j in range(written_first[u], written_first[u + 1]):
                                used = _know(
                                    j, written[j], s, listed, head, write, older, used, owner, session, definite
                                )
                    is_news = definite[w] and known[q] < member_first[q + 1] and member[known[q]] == w
                    if step == 1 and (is_news or (w != t and not definite[w])):
                        known[q] += is_news
                        room = used + written_first[w + 1] - written_first[w]
                        write, older = longer(write, room), longer(older, room)
                        for j in range(written_first[w], written_first[w + 1]):
                            used = _know(j, written[j], s, listed, head, write, older, used, owner, session, definite)
                if step == 1:
                    break
                for i in range(first[t], first[t + 1]):
                    w, k = writer[i], key[i]
                    if w == WRITES or listed[k] != s:
                        continue
                    read = write_of(w, k, written_first, written) if w != INITIAL else NOBODY
                    reads += 1
                    if read != NOBODY:
                        reached[read] = reads
                    node = head[k]
                    while node != NOBODY:
                        j = write[node]
                        node = older[node]
                        if j == read:
                            continue
                        if overtaken[j] == NOBODY or reached[overtaken[j]] != reads:
                            source, target = longer(source, count + 1), longer(target, count + 1)
                            source[count], target[count] = owner[j], w
                            count += 1
                            if w == INITIAL:
                                return source[:count].copy(), target[:count].copy()
                            if overtaken[j] == NOBODY:
                                overtaken[j] = read
                        reached[j] = reads
                for i in range(first[t], first[t + 1]):
                    w, k = writer[i], key[i]
                    if w <= 0 or listed[k] != s:
                        continue
                    if gathered[k] != t:
                        gathered[k] = t
                        head[k] = NOBODY
                    write, older = longer(write, used + 1), longer(older, used + 1)
                    write[used], older[used] = write_of(w, k, written_first, written), head[k]
                    head[k] = used
                    used += 1
    return source[:count].copy(), target[:count].copy()


@compiled
def _know(
    j: int,
    key: int,
    s: int,
    listed: Int32,
    head: Int32,
    write: Int32,
    older: Int32,
    used: int,
    owner: Int32,
    session: Int32,
    definite: Bool,
) -> int:
    """Session s learns of a write, which takes the place of an earlier one if that is certainly before it. How many
    nodes are used."""
    if listed[key] != s:
        listed[key], head[key] = s, NOBODY
    u, newest = owner[j], head[key]
    if newest != NOBODY and definite[u]:
        other = owner[write[newest]]
        if definite[other] and session[other] == session[u] and other < u:
            write[newest] = j
            return used
    write[used], older[used] = j, head[key]
    head[key] = used
    return used + 1
