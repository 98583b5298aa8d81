"""What pram forces: a session sees what it wrote and read before, and what those it has read from had written before
in their sessions.

What a session sees only grows, so sessions are taken one after the other. Each key has a list of the versions that the
session sees: a version that it reads comes behind all of them, and stands for them from then on. When it reads from
another session, it learns what it did not know yet of that one's writes; it looks at each transaction once.

Cost: for each session the number of writes that it sees. At worst that is all writes, but sessions that it never reads
from, directly or through others, cost nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int32, Int64
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.orders.weak.accesses import Accesses, Columns, columns_of, longer, write_of
from checkers.transactions.orders.weak.precedence import Forced
from harness.compiled import compiled, inlined


class _Blocks(NamedTuple):
    """Writes of definite transactions by session and turn, and behind them all other writes."""

    first: Int64
    """int64[sessions + 1]: writes of session s are first[s]:first[s + 1]."""
    key: Int32
    owner: Int32
    """The transaction of each write."""
    place_of: Int32
    """The place here of each write of `Columns.written`."""


class _SessionView(NamedTuple):
    """What the session that is looked at knows."""

    met: Int32
    """int32[sessions]: the last session that has met each."""
    so_far: Int64
    """int64[sessions]: the first of its writes that is unknown to the session that met it last."""
    listed: Int32
    """int32[keys]: the last session that has a list of its versions."""
    head: Int32
    """int32[keys]: the newest node of that list."""
    size: Int32
    """int32[keys]: how many nodes that list has."""
    gathered: Int32
    """int32[keys]: the last transaction of which a read stands for what was known before."""
    used: Int64
    """int64[1]: how many nodes there are."""


class _Nodes(NamedTuple):
    """The nodes of lists of versions."""

    write: Int32
    """The place of the write in `_Blocks`."""
    older: Int32
    """The next node, or NO_INDEX."""


class _State(NamedTuple):
    columns: Columns
    blocks: _Blocks
    session: _SessionView
    successor: Int32
    """int32[writes]: the first write of the key that each one was put before."""
    last_read: Int64
    """int64[writes]: the last read that each one was found to come before."""
    reads: Int64
    """int64[1]: how many reads there have been."""


def pipelined(accesses: Accesses) -> Forced:
    """The edges that pram forces. Reads and sessions together must have an order."""
    source, target = _pipelined(columns_of(accesses))
    return Forced(source=source, target=target)


@compiled
def _blocks(columns: Columns) -> _Blocks:
    written_first, written, sessions = columns.written_first, columns.written, len(columns.member_first) - 1
    first = np.zeros(sessions + 1, dtype=np.int64)
    key = np.empty(len(written), dtype=np.int32)
    owner = np.empty(len(written), dtype=np.int32)
    place_of = np.empty(len(written), dtype=np.int32)
    count = 0
    for wanted in (True, False):
        for s in range(sessions):
            for m in range(columns.member_first[s], columns.member_first[s + 1]):
                t = columns.member[m]
                if columns.definite[t] == wanted:
                    for j in range(written_first[t], written_first[t + 1]):
                        key[count], owner[count], place_of[j] = written[j], t, count
                        count += 1
            if wanted:
                first[s + 1] = count
    return _Blocks(first, key, owner, place_of)


@compiled
def _begun(columns: Columns) -> _State:
    nobody = np.full(columns.keys, NO_INDEX, dtype=np.int32)
    sessions, writes = len(columns.member_first) - 1, len(columns.written)
    known = _SessionView(
        np.full(sessions, NO_INDEX, dtype=np.int32),
        np.zeros(sessions, dtype=np.int64),
        nobody,
        nobody.copy(),
        np.zeros(columns.keys, dtype=np.int32),
        nobody.copy(),
        np.zeros(1, dtype=np.int64),
    )
    successor, last_read = np.full(writes, NO_INDEX, dtype=np.int32), np.zeros(writes, dtype=np.int64)
    return _State(columns, _blocks(columns), known, successor, last_read, np.zeros(1, dtype=np.int64))


@compiled
def _pipelined(columns: Columns) -> tuple[Int32, Int32]:
    """The edges (sources, targets).

    session A:  T1 writes x = 1;  T2 writes x = 2, y = 1          session B:  T3 reads y = 1;  T4 reads x = 1

    T3 reads from T2, so B knows the versions of x that A wrote up to T2, of which the last one stands for all;
    T4 reads that of T1:  T2 before T1;  from then on x = 1 stands for what B knows of x
    """
    state = _begun(columns)
    first, writer, known = columns.first, columns.writer, state.session
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    nodes = _Nodes(np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32))
    count = 0
    for s in range(len(columns.member_first) - 1):
        known.used[0] = 0
        for m in range(columns.member_first[s], columns.member_first[s + 1]):
            t = columns.member[m]
            # t's reads respect what preceded, in their sessions, the transactions that t reads from. These transactions
            # themselves, and t, are known to what follows in t's session.
            for i in range(first[t], first[t + 1]):
                if writer[i] > 0:
                    if _room_to_learn(state, s, writer[i]) > len(nodes.write):
                        nodes = _longer(nodes, _room_to_learn(state, s, writer[i]))
                    _learn(state, nodes, s, writer[i], writer[i] - 1)
            for i in range(first[t], first[t + 1]):
                if writer[i] == WRITES or known.listed[columns.key[i]] != s:
                    continue
                before, room = count, count + known.size[columns.key[i]]
                if room > len(source):
                    source, target = longer(source, room), longer(target, room)
                count = _read(state, nodes, i, source, target, count)
                if writer[i] == INITIAL and count > before:
                    return source[:count].copy(), target[:count].copy()
            if known.used[0] + first[t + 1] - first[t] > len(nodes.write):
                nodes = _longer(nodes, known.used[0] + first[t + 1] - first[t])
            _gather(state, nodes, s, t)
            for i in range(first[t], first[t + 1] + 1):
                w = writer[i] if i < first[t + 1] else t
                if w > 0:
                    if _room_to_learn(state, s, w) > len(nodes.write):
                        nodes = _longer(nodes, _room_to_learn(state, s, w))
                    _learn(state, nodes, s, w, w if columns.definite[w] else w - 1)
                    if w != t and not columns.definite[w]:
                        _learn_indefinite(state, nodes, s, w)
    return source[:count].copy(), target[:count].copy()


@compiled
def _longer(nodes: _Nodes, needed: int) -> _Nodes:
    return _Nodes(longer(nodes.write, needed), longer(nodes.older, needed))


@inlined
def _room_to_learn(state: _State, s: int, w: int) -> int:
    """How many nodes there can be once session s has learned what w's session wrote up to w."""
    blocks, known, written_first = state.blocks, state.session, state.columns.written_first
    q = state.columns.session[w]
    from_ = known.so_far[q] if known.met[q] == s else blocks.first[q]
    return int(known.used[0] + blocks.first[q + 1] - from_ + written_first[w + 1] - written_first[w])


@inlined
def _learn(state: _State, nodes: _Nodes, s: int, w: int, last: int) -> None:
    """Session s learns what definite transactions of w's session wrote up to transaction `last`."""
    blocks, known = state.blocks, state.session
    q = state.columns.session[w]
    if known.met[q] != s:
        known.met[q], known.so_far[q] = s, blocks.first[q]
    p = known.so_far[q]
    while p < blocks.first[q + 1] and blocks.owner[p] <= last:
        k = blocks.key[p]
        newest = known.head[k] if known.listed[k] == s else NO_INDEX
        if newest != NO_INDEX and blocks.first[q] <= nodes.write[newest] < blocks.first[q + 1]:
            # Sessions are in order: the last one stands for those before.
            nodes.write[newest] = max(nodes.write[newest], p)
        else:
            _push(known, nodes, s, k, p)
        p += 1
    known.so_far[q] = p


@inlined
def _learn_indefinite(state: _State, nodes: _Nodes, s: int, w: int) -> None:
    columns = state.columns
    for j in range(columns.written_first[w], columns.written_first[w + 1]):
        _push(state.session, nodes, s, columns.written[j], state.blocks.place_of[j])


@inlined
def _push(session: _SessionView, nodes: _Nodes, s: int, key: int, write: int) -> None:
    if session.listed[key] != s:
        session.listed[key], session.head[key], session.size[key] = s, NO_INDEX, 0
    at = session.used[0]
    nodes.write[at], nodes.older[at] = write, session.head[key]
    session.head[key] = at
    session.size[key] += 1
    session.used[0] = at + 1


@inlined
def _read(state: _State, nodes: _Nodes, i: int, source: Int32, target: Int32, count: int) -> int:
    """Puts the versions that the session knows before the one that it reads in operation i. Returns how many edges
    there are then. An edge to INITIAL, which is a contradiction, is the last one."""
    columns, successor, last_read = state.columns, state.successor, state.last_read
    w, k = columns.writer[i], columns.key[i]
    read = NO_INDEX
    if w != INITIAL:
        read = state.blocks.place_of[write_of(w, k, columns.written_first, columns.written)]
    reads = state.reads[0] + 1
    state.reads[0] = reads
    if read != NO_INDEX:
        last_read[read] = reads
    node = state.session.head[k]
    while node != NO_INDEX:
        p = nodes.write[node]
        node = nodes.older[node]
        if p == read:
            continue
        if successor[p] == NO_INDEX or last_read[successor[p]] != reads:
            source[count], target[count] = state.blocks.owner[p], w
            count += 1
            if w == INITIAL:
                return count
            if successor[p] == NO_INDEX:
                successor[p] = read
        last_read[p] = reads
    return count


@inlined
def _gather(state: _State, nodes: _Nodes, s: int, t: int) -> None:
    """Lets the version that t reads of each key stand for all that its session knew of the key."""
    columns, known = state.columns, state.session
    for i in range(columns.first[t], columns.first[t + 1]):
        w, k = columns.writer[i], columns.key[i]
        if w <= 0 or known.listed[k] != s:
            continue
        if known.gathered[k] != t:
            known.gathered[k], known.head[k], known.size[k] = t, NO_INDEX, 0
        write = state.blocks.place_of[write_of(w, k, columns.written_first, columns.written)]
        _push(known, nodes, s, k, write)
