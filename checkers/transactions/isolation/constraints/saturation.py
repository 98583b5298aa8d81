"""Everything that the known order forces, until nothing more follows: a graph of edges, each with its reason, and a
clock for each event.

For a read of key k by r from w and another writer u of k: if u precedes r, it precedes w (OVERWRITTEN); if w precedes
u, so does r (OVERWRITES). At snapshot isolation writers of one key exclude each other: if one began before another
committed, it committed before the other began (EXCLUSIVE). Sweeps over the graph in topological order apply the rules
and carry clocks along, one place a chain for each event: the last event there that precedes it.

Sound always. It finds all that these rules force where every event is on a chain and all candidates are looked at,
as `events` says when not. Even then what is left open need not have an answer.

Source: the rules are those of Biswas, Enea, OOPSLA 2019, and of Tan et al., Cobra, OSDI 2020, for any order of
versions, and of Huang et al., PolySI, VLDB 2023, for snapshots; clocks by chains instead of reachability of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Int8, Int32, Int64
from checkers.transactions.evidence.proof import Because
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.isolation.constraints.events import CANDIDATES, CODE, Edges, Events, Kept
from harness.compiled import compiled

OVERWRITTEN, OVERWRITES, EXCLUSIVE = (
    CODE[because] for because in (Because.OVERWRITTEN, Because.OVERWRITES, Because.EXCLUSIVE)
)

SWEEPS = 64
"""At most so many. It takes a few; a history that needs more is left with what they found."""

NOTHING = -1
AGAIN, DONE, CYCLE = range(3)
OLD, NEWS = range(2)
"""Whether a clock says more than what followers have been told."""


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Of each read (or, for EXCLUSIVE, of each write) the other writers of its key that it may force something upon:
    writers[low:high] of `Accesses`. All others are known to come before or after anyhow, or are too far away. Sweeps
    narrow them down."""

    low: Int64
    high: Int64


@dataclass(frozen=True, kw_only=True)
class Saturated:
    events: Events
    edges: Edges
    clock: Int32
    """Row of each event: for each chain the place of the last event on it that precedes it, or -1."""
    cyclic: bool
    """The edges make a cycle; then `clock` says more than is known."""


def saturated(events: Events) -> Saturated:
    """Stops at the first contradiction: then the edges make a cycle."""
    reads, writes = candidates(events)
    edges = [events.base]
    clock = np.full((events.size, max(events.chains, 1)), NOTHING, dtype=np.int32)
    told = np.full(events.size, NEWS, dtype=np.int8)
    ended = AGAIN
    for _ in range(SWEEPS):
        known = Edges.joined(edges)
        edges = [known]
        first, targets = followers(known.source, known.target, events.size)
        found, ended = _swept(
            first,
            targets,
            clock,
            told,
            events.chain,
            events.place,
            events.width,
            len(events.committed),
            events.accesses.read_first,
            events.accesses.key,
            events.accesses.writer,
            reads.low,
            reads.high,
            events.accesses.write_first,
            events.accesses.write_key,
            writes.low,
            writes.high,
            events.accesses.writers,
            max(events.size, 1 << 10),
        )
        source, target, because, key, reader, writer = found
        edges.append(
            Edges(source=source, target=target, because=because.astype(np.int8), key=key, reader=reader, writer=writer)
        )
        if ended != AGAIN:
            break
    return Saturated(events=events, edges=Edges.joined(edges), clock=clock, cyclic=ended == CYCLE)


def candidates(events: Events) -> tuple[Candidates, Candidates]:
    """Of reads and of writes."""
    committed, known = events.committed, events.accesses
    version_writer = known.version_writer
    if events.kept is Kept.REALTIME:
        latest = _running_latest(known.writers_first, events.settled[known.writers])
        reads = _overlapping(
            known.writers_first,
            committed.start[known.writers],
            latest,
            known.key,
            committed.start[known.writer],
            events.settled[known.reader],
        )
        writes = _overlapping(
            known.writers_first,
            committed.start[known.writers],
            latest,
            known.write_key,
            committed.start[version_writer],
            events.settled[version_writer],
        )
        return Candidates(low=reads[0], high=reads[1]), Candidates(low=writes[0], high=writes[1])
    counts = np.diff(known.writers_first)
    pairs = int(counts[known.key].sum()) + (events.width - 1) * int((counts**2).sum())
    reach = len(committed) if pairs <= CANDIDATES else max(CANDIDATES // (2 * len(known.key) + 1), 1)
    reads = _nearest(known.writers_first, known.writers, known.key, known.writer, known.reader, reach)
    writes = _nearest(known.writers_first, known.writers, known.write_key, version_writer, version_writer, reach)
    return Candidates(low=reads[0], high=reads[1]), Candidates(low=writes[0], high=writes[1])


@compiled
def _running_latest(writers_first: Int64, settled: Int64) -> Int64:
    """Of each key's writers, when the last of them and those before was settled."""
    latest = settled.copy()
    for k in range(len(writers_first) - 1):
        for i in range(writers_first[k] + 1, writers_first[k + 1]):
            latest[i] = max(latest[i], latest[i - 1])
    return latest


@compiled
def _overlapping(
    writers_first: Int64, start: Int64, latest: Int64, key: Int32, begun: Int64, settled: Int64
) -> tuple[Int64, Int64]:
    """Writers of each key that neither all were settled before it begun, nor began after it was settled."""
    low = np.empty(len(key), dtype=np.int64)
    high = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        begin, end = writers_first[key[i]], writers_first[key[i] + 1]
        low[i] = begin + np.searchsorted(latest[begin:end], begun[i])
        high[i] = max(low[i], begin + np.searchsorted(start[begin:end], settled[i]))
    return low, high


@compiled
def _nearest(
    writers_first: Int64, writers: Int32, key: Int32, since: Int32, until: Int32, reach: int
) -> tuple[Int64, Int64]:
    """Writers of each key from `reach` before the earlier to `reach` behind the later of two transactions."""
    low = np.empty(len(key), dtype=np.int64)
    high = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        begin, end = writers_first[key[i]], writers_first[key[i] + 1]
        earlier, later = min(since[i], until[i]), max(since[i], until[i])
        low[i] = max(begin, begin + np.searchsorted(writers[begin:end], earlier) - reach)
        high[i] = min(end, begin + np.searchsorted(writers[begin:end], later) + reach)
    return low, high


@compiled
def _swept(
    first: Int64,
    targets: Int32,
    clock: Int32,
    told: Int8,
    chain: Int32,
    place: Int32,
    width: int,
    transactions: int,
    read_first: Int64,
    read_key: Int32,
    read_writer: Int32,
    read_low: Int64,
    read_high: Int64,
    write_first: Int64,
    write_key: Int32,
    write_low: Int64,
    write_high: Int64,
    writers: Int32,
    room: int,
) -> tuple[Int32, int]:
    """New edges, with rows source, target, because, key, reader, writer; and how it ended: with a CYCLE (at an edge
    that closes one, which is the last); DONE, if the rules have seen complete clocks; or what it found asks for another
    sweep, AGAIN."""
    size = len(first) - 1
    last = width - 1
    waiting = np.zeros(size, dtype=np.int32)
    for e in targets:
        waiting[e] += 1
    order = np.empty(size, dtype=np.int32)
    found = np.empty((6, room), dtype=np.int32)
    changed = False
    at, ready, edges = 0, 0, 0
    for e in range(size):
        if waiting[e] == 0:
            order[ready] = e
            ready += 1
    while at < ready:
        event = order[at]
        at += 1
        mine = clock[event]
        for i in range(first[event], first[event + 1]):
            follower = targets[i]
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order[ready] = follower
                ready += 1
            if told[event] == NEWS and _carry(clock, mine, chain[event], place[event], follower):
                told[follower] = NEWS
                changed = True
        told[event] = OLD
        if event < width or event >= transactions * width:
            continue
        t = event // width
        if event == t * width:
            for i in range(read_first[t], read_first[t + 1]):
                w = read_writer[i]
                while read_low[i] < read_high[i]:
                    u = writers[read_low[i]]
                    another = u != t and u != w
                    if another and (w == INITIAL or not _precedes(clock, chain, place, u * width + last, w * width)):
                        break
                    read_low[i] += 1
                while read_low[i] < read_high[i]:
                    u = writers[read_high[i] - 1]
                    another = u != t and u != w
                    if another and not _precedes(clock, chain, place, event, u * width + last):
                        break
                    read_high[i] -= 1
                for j in range(read_low[i], read_high[i]):
                    u = writers[j]
                    another = u != t and u != w
                    if not another or edges + 2 > room:
                        continue
                    done = u * width + last
                    forced = w == INITIAL or _precedes(clock, chain, place, w * width, done)
                    if forced and chain[event] >= 0 and clock[done, chain[event]] < place[event]:
                        _note(found, edges, event, done, OVERWRITES, read_key[i], t, w)
                        edges += 1
                        if _precedes(clock, chain, place, done, event):
                            return found[:, :edges].copy(), CYCLE
                        if _carry(clock, mine, chain[event], place[event], done):
                            told[done] = NEWS
                    if w == INITIAL or chain[done] < 0 or mine[chain[done]] < place[done]:
                        continue
                    begun = w * width
                    if clock[begun, chain[done]] < place[done]:
                        _note(found, edges, done, begun, OVERWRITTEN, read_key[i], t, w)
                        edges += 1
                        if _precedes(clock, chain, place, begun, done):
                            return found[:, :edges].copy(), CYCLE
                        if _carry(clock, clock[done], chain[done], place[done], begun):
                            told[begun] = NEWS
        if width > 1 and event == t * width + last:
            for i in range(write_first[t], write_first[t + 1]):
                while write_low[i] < write_high[i]:
                    u = writers[write_low[i]]
                    if u != t and not _precedes(clock, chain, place, u * width + last, t * width):
                        break
                    write_low[i] += 1
                while write_low[i] < write_high[i]:
                    u = writers[write_high[i] - 1]
                    if u != t and not _precedes(clock, chain, place, event, u * width):
                        break
                    write_high[i] -= 1
                for j in range(write_low[i], write_high[i]):
                    u = writers[j]
                    if u == t or edges + 2 > room or not _precedes(clock, chain, place, u * width, event):
                        continue
                    done, begun = u * width + last, t * width
                    if clock[begun, chain[done]] < place[done]:
                        _note(found, edges, done, begun, EXCLUSIVE, write_key[i], -1, -1)
                        edges += 1
                        if _precedes(clock, chain, place, begun, done):
                            return found[:, :edges].copy(), CYCLE
                        if _carry(clock, clock[done], chain[done], place[done], begun):
                            told[begun] = NEWS
    if ready < size:
        return found[:, :edges].copy(), CYCLE
    return found[:, :edges].copy(), AGAIN if changed or edges else DONE


@compiled
def _precedes(clock: Int32, chain: Int32, place: Int32, source: int, target: int) -> bool:
    """As far as chains tell."""
    return bool(chain[source] >= 0 and clock[target, chain[source]] >= place[source])


@compiled
def _carry(clock: Int32, row: Int32, chain: int, place: int, target: int) -> bool:
    """The target comes after an event with this clock at this place. Whether that is news."""
    mine = clock[target]
    news = False
    for c in range(len(row)):
        news |= row[c] > mine[c]
        mine[c] = max(row[c], mine[c])
    if chain >= 0 and place > mine[chain]:
        mine[chain] = place
        news = True
    return news


@compiled
def _note(found: Int32, edges: int, source: int, target: int, because: int, key: int, reader: int, writer: int) -> None:
    found[0, edges], found[1, edges], found[2, edges] = source, target, because
    found[3, edges], found[4, edges], found[5, edges] = key, reader, writer
