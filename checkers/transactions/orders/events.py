"""The events of a history, and the part of their order that is known from the start: the graph that decisions begin
with.

For serializability each transaction is one event; for snapshot isolation it is two, its begin `2 * t` and its commit
`2 * t + 1`. Realtime order adds moments, which are events as well: all that ended before a moment precedes all that
began after it. So a few edges for each transaction replace one for each pair. INITIAL precedes everything and has no
edges.

Events are put on chains. The order along a chain is known, so one number for each chain says what precedes an event.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int8, Int32, Int64, run_starts
from checkers.transactions.evidence.proof import Because
from checkers.transactions.history.committed import INITIAL, NEVER, WRITES, Committed
from harness.compiled import compiled

CANDIDATES = 1 << 28
"""The most pairs of a read and another writer of its key that a sweep looks at; it takes those nearest to each
other."""

NO_CHAIN = -1
FEW_CHAINS = 64
"""How many chains are tried first. They are enough for most histories; others get more."""

BECAUSE = tuple(Because)
"""The reasons in the order of the numbers that stand for them in arrays."""
CODE = {because: code for code, because in enumerate(BECAUSE)}


class Isolation(Enum):
    """How many events a transaction has."""

    SERIALIZABLE = 1
    SNAPSHOT = 2


class ExternalOrder(Enum):
    """Which order of transactions, known from elsewhere than their reads and writes, has to be kept."""

    NOTHING = "nothing"
    SESSION = "session"
    REALTIME = "realtime"


STRONGEST_FIRST = (ExternalOrder.REALTIME, ExternalOrder.SESSION, ExternalOrder.NOTHING)


class Accesses(NamedTuple):
    """The reads and writes of all transactions, as kernels take them. A version is a write; versions are numbered by
    transaction and key, and the initial versions of the keys come behind all that were written."""

    read_first: Int64
    """Reads of transaction t are read_first[t]:read_first[t + 1]."""
    reader: Int32
    read_key: Int32
    read_writer: Int32
    """The transaction that wrote the version read, or INITIAL."""
    read_version: Int32
    write_first: Int64
    """Versions that t wrote are write_first[t]:write_first[t + 1]."""
    write_key: Int32
    version_writer: Int32
    writers_first: Int64
    """Writers of key k are writers[writers_first[k]:writers_first[k + 1]], ascending."""
    writers: Int32
    key_versions: Int64
    """Versions that were written of key k are key_versions[writers_first[k]:writers_first[k + 1]], ascending."""
    readers_first: Int64
    """Readers of version v are readers[readers_first[v]:readers_first[v + 1]]."""
    readers: Int32

    @property
    def keys(self) -> int:
        return len(self.writers_first) - 1


def accesses(committed: Committed) -> Accesses:
    """Each read and write once, sorted by transaction and key."""
    keys = int(committed.key.max(initial=-1)) + 1
    transaction, key, writer = committed.transaction, committed.key, committed.writer
    order = np.lexsort((writer, key, transaction))
    transaction, key, writer = transaction[order], key[order], writer[order]
    once = run_starts(transaction, key, writer)
    transaction, key, writer = transaction[once], key[once], writer[once]
    wrote = writer == WRITES
    size = len(committed)
    write_key, version_writer = key[wrote], transaction[wrote]
    key_versions = np.argsort(write_key, kind="stable")
    reader, read_key, read_writer = transaction[~wrote], key[~wrote], writer[~wrote]
    place = version_writer.astype(np.int64) * keys + write_key
    version = np.searchsorted(place, read_writer.astype(np.int64) * keys + read_key)
    version = np.where(read_writer == INITIAL, len(place) + read_key, version)
    return Accesses(
        read_first=_firsts(reader, size),
        reader=reader,
        read_key=read_key,
        read_writer=read_writer,
        read_version=version.astype(np.int32),
        write_first=_firsts(version_writer, size),
        write_key=write_key,
        version_writer=version_writer,
        writers_first=_firsts(write_key, keys),
        writers=version_writer[key_versions],
        key_versions=key_versions,
        readers_first=_firsts(version, len(place) + keys),
        readers=reader[np.argsort(version, kind="stable")],
    )


def _firsts(numbers: Int32 | Int64, count: int) -> Int64:
    return np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count)))).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Each source comes before its target. Edges are in the order in which they were derived: each follows from earlier
    ones."""

    source: Int32
    target: Int32
    because: Int8
    """The reasons, as places in BECAUSE. Edges from or to a moment have REALTIME."""
    key: Int32
    reader: Int32
    writer: Int32

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def of(cls, source: Int32, target: Int32, because: Because, key: Int32 | int = -1) -> Edges:
        size = len(source)
        nobody = np.full(size, -1, dtype=np.int32)
        return cls(
            source=source.astype(np.int32),
            target=target.astype(np.int32),
            because=np.full(size, CODE[because], dtype=np.int8),
            key=nobody if isinstance(key, int) else key,
            reader=nobody,
            writer=nobody,
        )

    @classmethod
    def joined(cls, parts: list[Edges]) -> Edges:
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__annotations__})

    def only(self, which: Bool) -> Edges:
        return Edges(**{name: getattr(self, name)[which] for name in Edges.__annotations__})


@dataclass(frozen=True, kw_only=True)
class Events:
    committed: Committed
    accesses: Accesses
    isolation: Isolation
    kept: ExternalOrder
    size: int
    """How many events there are: those of transactions, then moments."""
    base: Edges
    settled: Int64
    """When each transaction had certainly happened: its end, or, if it is indefinite, the end of the first reader."""
    chain: Int32
    """The chain of each event, or NO_CHAIN."""
    place: Int32
    """The place of each event on its chain; places ascend along it."""
    chains: int

    @property
    def width(self) -> int:
        """How many events a transaction has."""
        return self.isolation.value

    @property
    def moments_from(self) -> int:
        """The first moment: events before it are of transactions."""
        return len(self.committed) * self.width

    def without_moments(self, order: Int32) -> Int32:
        return order[order < self.moments_from]

    def begin(self, transaction: Int32) -> Int32:
        return transaction * np.int32(self.width)

    def commit(self, transaction: Int32) -> Int32:
        return transaction * np.int32(self.width) + np.int32(self.width - 1)


def events(committed: Committed, isolation: Isolation, kept: ExternalOrder) -> Events:
    """The events and what is known of their order from the start, without chains. It takes time and memory proportional
    to the history."""
    known = accesses(committed)
    width, size = isolation.value, len(committed) * isolation.value
    last = width - 1
    seen = known.read_writer != INITIAL
    parts = [
        Edges.of(known.read_writer[seen] * width + last, known.reader[seen] * width, Because.READ, known.read_key[seen])
    ]
    if len(committed.version_edges):
        key, u, v = (np.ascontiguousarray(column) for column in committed.version_edges.T)
        shown = (u != INITIAL) & (v != INITIAL)
        parts.append(Edges.of(u[shown] * width + last, v[shown] * width, Because.VERSION_ORDER, key[shown]))
    if isolation is Isolation.SNAPSHOT:
        begins = np.arange(1, len(committed), dtype=np.int32) * width
        parts.append(Edges.of(begins, begins + 1, Because.INSIDE))
    if kept is ExternalOrder.SESSION:
        earlier, later = _session_pairs(committed)
        parts.append(Edges.of(earlier * width + last, later * width, Because.SESSION))
    if kept is ExternalOrder.REALTIME:
        source, target, added = moments(committed.start, committed.end, np.argsort(committed.end), width)
        parts.append(Edges.of(source, target, Because.REALTIME))
        size += added
    base = Edges.joined(parts)
    settled = committed.end.copy()
    late = seen & (settled[known.read_writer] == NEVER)
    np.minimum.at(settled, known.read_writer[late], committed.end[known.reader[late]])
    return Events(
        committed=committed,
        accesses=known,
        isolation=isolation,
        kept=kept,
        size=size,
        base=base,
        settled=settled,
        chain=np.full(size, NO_CHAIN, dtype=np.int32),
        place=np.zeros(size, dtype=np.int32),
        chains=0,
    )


def chained(events: Events, cells: int) -> Events:
    """The same with chains, few enough that all clocks together have at most `cells` entries."""
    committed, base, width, size = events.committed, events.base, events.width, events.size
    limit = max(cells // max(size, 1) - 1, 1)
    if events.kept is ExternalOrder.REALTIME:
        chain, place = _chains_of_spans(committed.start, events.settled, limit)
    else:
        across = base.only(base.because != CODE[Because.INSIDE])
        first, targets = followers(across.source // width, across.target // width, len(committed))
        chain, place = _chains_by_order(first, targets, committed.session, limit)
    chains = int(chain.max(initial=NO_CHAIN)) + 1
    moments = np.arange(size - len(committed) * width, dtype=np.int32)
    inside = np.tile(np.arange(width, dtype=np.int32), len(committed))
    return replace(
        events,
        chain=np.concatenate((np.repeat(chain, width), np.full(len(moments), chains, dtype=np.int32))),
        place=np.concatenate((np.repeat(place * width, width) + inside, moments)),
        chains=chains + (len(moments) > 0),
    )


def _session_pairs(committed: Committed) -> tuple[Int32, Int32]:
    """Pairs of neighbours in a session. An indefinite transaction follows the last definite one and has no follower."""
    order = np.argsort(committed.session, kind="stable")[1:]
    session, definite = committed.session[order], committed.end[order] != NEVER
    rows = np.arange(len(order))
    last = np.maximum.accumulate(np.where(definite, rows, -1)) if len(order) else rows
    before = np.concatenate(([-1], last[:-1])) if len(order) else rows
    follows = (before >= 0) & (session[before] == session)
    return order[before[follows]].astype(np.int32), order[rows[follows]].astype(np.int32)


@compiled
def moments(start: Int64, end: Int64, by_end: Int64, width: int) -> tuple[Int32, Int32, int]:
    """Edges from each end to the next moment, from moment to moment, and from each moment to what begins next."""
    size = len(start)
    source = np.empty(3 * size, dtype=np.int32)
    target = np.empty(3 * size, dtype=np.int32)
    edges, count, at, open_from = 0, 0, 1, 1
    for t in range(1, size):
        while at < size and end[by_end[at]] < start[t]:
            at += 1
        if at > open_from:
            moment = size * width + count
            for i in range(open_from, at):
                source[edges], target[edges] = by_end[i] * width + width - 1, moment
                edges += 1
            if count > 0:
                source[edges], target[edges] = moment - 1, moment
                edges += 1
            count += 1
            open_from = at
        if count > 0:
            source[edges], target[edges] = size * width + count - 1, t * width
            edges += 1
    return source[:edges].copy(), target[:edges].copy(), count


@compiled
def _chains_of_spans(start: Int64, settled: Int64, limit: int) -> tuple[Int32, Int32]:
    """(chain, place on it) of each transaction, which goes on the first chain whose last one was settled before it
    began."""
    chain = np.full(len(start), NO_CHAIN, dtype=np.int32)
    place = np.zeros(len(start), dtype=np.int32)
    last = np.zeros(min(limit, len(start)) + 1, dtype=np.int32)
    chains = 0
    for t in range(1, len(start)):
        for c in range(chains):
            if settled[last[c]] < start[t]:
                chain[t] = c
                place[t] = place[last[c]] + 1
                last[c] = t
                break
        if chain[t] == NO_CHAIN and chains < limit:
            chain[t] = chains
            last[chains] = t
            chains += 1
    return chain, place


def _chains_by_order(first: Int64, targets: Int32, session: Int32, limit: int) -> tuple[Int32, Int32]:
    """Chains along which the order of transactions follows from edges: (chain, place on it)."""
    columns = FEW_CHAINS
    while True:
        chain, place, fits = _chains(first, targets, session, min(columns, limit))
        if fits or columns >= limit:
            return chain, place
        columns *= 4


@compiled
def _chains(first: Int64, targets: Int32, session: Int32, limit: int) -> tuple[Int32, Int32, bool]:
    """(chain, place on it) of each transaction, and whether all found a chain. A transaction goes on a chain whose last
    one precedes it: that of its session if possible, else the chain that was unused for longest, else a new one."""
    size = len(first) - 1
    waiting = np.zeros(size, dtype=np.int32)
    for follower in targets:
        waiting[follower] += 1
    clock = np.full((size, limit), -1, dtype=np.int32)
    chain = np.full(size, NO_CHAIN, dtype=np.int32)
    place = np.zeros(size, dtype=np.int32)
    last = np.zeros(limit, dtype=np.int32)
    since = np.zeros(limit, dtype=np.int32)
    of_session = np.zeros(session.max() + 1, dtype=np.int32)
    chains, done, fits = 0, 0, True
    ready = [np.int64(0)]
    ready.pop()
    for t in range(1, size):
        if waiting[t] == 0:
            ready.append(np.int64(t))
    while len(ready) > 0:
        t = int(heapq.heappop(ready))
        mine = clock[t]
        chosen = of_session[session[t]]
        if chosen >= chains or mine[chosen] != last[chosen]:
            chosen = NO_CHAIN
            for c in range(chains):
                if mine[c] == last[c] and (chosen == NO_CHAIN or since[c] < since[chosen]):
                    chosen = c
        if chosen == NO_CHAIN and chains < limit:
            chosen = chains
            last[chosen] = -1
            chains += 1
        if chosen == NO_CHAIN:
            fits = False
        else:
            chain[t], place[t] = chosen, last[chosen] + 1
            last[chosen], since[chosen] = place[t], done
            of_session[session[t]] = chosen
        done += 1
        for i in range(first[t], first[t + 1]):
            follower = targets[i]
            theirs = clock[follower]
            for c in range(chains):
                theirs[c] = max(theirs[c], mine[c])
            if chosen != NO_CHAIN:
                theirs[chosen] = max(theirs[chosen], place[t])
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, np.int64(follower))
    return chain, place, fits
