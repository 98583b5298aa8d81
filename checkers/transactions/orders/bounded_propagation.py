"""What short paths force, and whether that contradicts itself: most violations show there, before any clock is made.

The search from each transaction visits only a few events, those nearest to it along edges, backwards and forwards, and
applies the rules of `propagation` to them. The edges that it finds shorten paths for the next pass. Realtime order has
too many paths to follow. There a read meets two other writers of its key: of those that ended before the read began,
the one that began last; and of those that began after the writer of the version read had ended, the one that ended
first.

This is always sound and never complete: an event that is further away forces nothing. Time and memory are proportional
to the history, however many sessions are busy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers import search_budget
from checkers.kernels.adjacency import followers
from checkers.kernels.columns import NO_INDEX, Int32, Int64
from checkers.transactions.history.committed import INITIAL, NEVER
from checkers.transactions.orders.events import Accesses, Edges, Events, ExternalOrder
from checkers.transactions.orders.propagation import (
    OVERWRITES,
    OVERWRITTEN,
    Forced,
    OrderKind,
    edges_of,
    note_exclusive,
    note_overwrites,
    note_overwritten,
    with_room,
)
from checkers.transactions.orders.saturation import NOTHING, Clocks, Saturated
from checkers.transactions.orders.strong_components import has_cycle
from harness.compiled import compiled, inlined

PASSES = 4
MAX_NEIGHBOURS = 48
"""The most events that are visited from each transaction in each direction."""

FIRST_WRITES = 1 << 20
"""The most edges that put readers of an initial version before each writer of the key. Keys that need fewest of them
come first."""

ONE_ORDER = int(OrderKind.TOTAL)


class _Graph(NamedTuple):
    first: Int64
    """int64[events + 1]: events behind e are after[first[e]:first[e + 1]]."""
    after: Int32
    before_first: Int64
    """int64[events + 1]: events before e are before[before_first[e]:before_first[e + 1]]."""
    before: Int32


def forced_by_short_paths(events: Events, orders: OrderKind) -> Saturated:
    """The edges that short paths force, without clocks. The passes end when edges make a cycle or searches are over."""
    no_clocks = Clocks(
        np.full((1, 1), NOTHING, dtype=np.int32), np.zeros(1, dtype=np.bool_), events.chain, events.place
    )
    edges = events.base
    added = _of_initial_and_realtime(events) if orders is OrderKind.TOTAL else _nothing()
    for _ in range(PASSES):
        edges = Edges.joined([edges, _new(added, edges, events.size)])
        if has_cycle(edges.source, edges.target, events.size):
            return Saturated(events=events, edges=edges, clocks=no_clocks, cyclic=True)
        graph = _Graph(
            *followers(edges.source, edges.target, events.size), *followers(edges.target, edges.source, events.size)
        )
        if search_budget.is_over():
            break
        added = _forced(graph, events.accesses, int(orders), events.width)
        if not len(added[0]):
            break
    return Saturated(events=events, edges=edges, clocks=no_clocks, cyclic=False)


def _nothing() -> Int32:
    return np.zeros((6, 0), dtype=np.int32)


def _new(rows: Int32, edges: Edges, size: int) -> Edges:
    """The edges of rows (source, target, because, key, reader, writer) that are not known yet, each of them once."""
    pairs, once = np.unique(rows[0].astype(np.int64) * size + rows[1], return_index=True)
    # `isin` would hash both, which takes ten times as long.
    there = np.append(np.sort(edges.source.astype(np.int64) * size + edges.target), NEVER)
    once = np.sort(once[there[np.searchsorted(there, pairs)] != pairs])
    return edges_of(rows[:, once])


def _of_initial_and_realtime(events: Events) -> Int32:
    """Rows that follow from initial versions and realtime alone."""
    accesses, committed, width = events.accesses, events.committed, events.width
    initial = np.flatnonzero(accesses.read_writer == INITIAL)
    writers = np.diff(accesses.writers_first)
    cost = np.bincount(accesses.read_key[initial], minlength=accesses.keys) * writers
    cheapest = np.argsort(cost, kind="stable")
    affordable = np.zeros(accesses.keys, dtype=np.bool_)
    affordable[cheapest[np.cumsum(cost[cheapest]) <= FIRST_WRITES]] = True
    initial = initial[affordable[accesses.read_key[initial]]]
    key, reader = (
        np.repeat(column[initial], writers[accesses.read_key[initial]])
        for column in (accesses.read_key, accesses.reader)
    )
    ends = np.cumsum(writers[accesses.read_key[initial]])
    behind = np.arange(len(key)) - np.repeat(
        ends - writers[accesses.read_key[initial]], writers[accesses.read_key[initial]]
    )
    writer = accesses.writers[accesses.writers_first[key] + behind]
    other = writer != reader
    rows = [_overwrites(reader[other], writer[other], key[other], np.zeros(other.sum(), dtype=np.int32), width)]
    if events.kept is ExternalOrder.REALTIME:
        earlier, later = _met_in_realtime(
            committed.start,
            committed.end,
            accesses.reader,
            accesses.read_key,
            accesses.read_writer,
            accesses.writers_first,
            accesses.writers,
        )
        reads = np.flatnonzero((earlier != NO_INDEX) & (accesses.read_writer != INITIAL))
        of_initial = np.flatnonzero((earlier != NO_INDEX) & (accesses.read_writer == INITIAL))
        after = np.flatnonzero(later != NO_INDEX)
        rows += [
            _overwritten(
                accesses.reader[reads], earlier[reads], accesses.read_key[reads], accesses.read_writer[reads], width
            ),
            *(
                _overwrites(
                    accesses.reader[some], met[some], accesses.read_key[some], accesses.read_writer[some], width
                )
                for some, met in ((of_initial, earlier), (after, later))
            ),
        ]
    return np.concatenate(rows, axis=1)


def _overwrites(reader: Int32, other: Int32, key: Int32, writer: Int32, width: int) -> Int32:
    because = np.full(len(reader), OVERWRITES)
    return np.stack((reader * width, other * width + width - 1, because, key, reader, writer)).astype(np.int32)


def _overwritten(reader: Int32, other: Int32, key: Int32, writer: Int32, width: int) -> Int32:
    because = np.full(len(reader), OVERWRITTEN)
    return np.stack((other * width + width - 1, writer * width, because, key, reader, writer)).astype(np.int32)


@compiled
def _met_in_realtime(
    start: Int64, end: Int64, reader: Int32, key: Int32, writer: Int32, writers_first: Int64, writers: Int32
) -> tuple[Int32, Int32]:
    """For each read another writer of its key that ended before the read, and one that began after the writer of the
    version read had ended; NO_INDEX where there is none."""
    earlier = np.full(len(reader), NO_INDEX, dtype=np.int32)
    later = np.full(len(reader), NO_INDEX, dtype=np.int32)
    by_end = writers.copy()
    latest = writers.copy()
    earliest = writers.copy()
    for k in range(len(writers_first) - 1):
        low, high = writers_first[k], writers_first[k + 1]
        by_end[low:high] = writers[low:high][np.argsort(end[writers[low:high]])]
        for i in range(low, high):
            latest[i] = by_end[i]
            if i > low and start[latest[i - 1]] > start[latest[i]]:
                latest[i] = latest[i - 1]
        for i in range(high - 2, low - 1, -1):
            if end[earliest[i + 1]] < end[earliest[i]]:
                earliest[i] = earliest[i + 1]
    ends = end[by_end]
    starts = start[writers]
    for i in range(len(reader)):
        low, high, w = writers_first[key[i]], writers_first[key[i] + 1], writer[i]
        ended = low + np.searchsorted(ends[low:high], start[reader[i]])
        if ended > low and latest[ended - 1] != w and latest[ended - 1] != reader[i]:
            earlier[i] = latest[ended - 1]
        if w == INITIAL or end[w] == NEVER:
            continue
        begun = low + np.searchsorted(starts[low:high], end[w] + 1)
        if begun < high and earliest[begun] != w and earliest[begun] != reader[i]:
            later[i] = earliest[begun]
    return earlier, later


@compiled
def _forced(graph: _Graph, accesses: Accesses, orders: int, width: int) -> Int32:
    """The edges as rows (source, target, because, key, reader, writer), some of them more than once."""
    transactions = len(accesses.read_first) - 1
    seen = np.full(transactions * width, -1, dtype=np.int32)
    met = np.empty(MAX_NEIGHBOURS, dtype=np.int32)
    found = Forced(np.empty((6, 1 << 10), dtype=np.int32), np.zeros(1, dtype=np.int64))
    for t in range(1, transactions):
        reads = accesses.read_first[t + 1] - accesses.read_first[t]
        if reads > 0:
            count = _nearest(graph.before_first, graph.before, seen, met, t * width, 2 * t)
            for m in range(1, count):
                if met[m] % width != width - 1:
                    continue
                found = with_room(found, 2 * reads)
                _overwritten_by(accesses, found, orders, width, t, met[m] // width)
        if orders == ONE_ORDER and accesses.write_first[t] < accesses.write_first[t + 1]:
            count = _nearest(graph.first, graph.after, seen, met, t * width, 2 * t + 1)
            for m in range(1, count):
                u = met[m] // width
                if met[m] % width != width - 1 or u == t:
                    continue
                for i in range(accesses.write_first[t], accesses.write_first[t + 1]):
                    if _writes(accesses, u, accesses.write_key[i]):
                        found = with_room(found, accesses.readers_first[i + 1] - accesses.readers_first[i] + 2)
                        _follows(accesses, found, width, t, u, i)
    return found.rows[:, : found.used[0]].copy()


@inlined
def _nearest(first: Int64, targets: Int32, seen: Int32, met: Int32, start: int, stamp: int) -> int:
    """Writes the nearest events of transactions to `met`, `start` first, and returns how many they are."""
    met[0], count, at = start, 1, 0
    seen[start] = stamp
    while at < count and count < len(met):
        event = met[at]
        at += 1
        for i in range(first[event], first[event + 1]):
            other = targets[i]
            if 0 < other < len(seen) and seen[other] != stamp and count < len(met):
                seen[other] = stamp
                met[count] = other
                count += 1
    return count


@inlined
def _writes(accesses: Accesses, t: int, key: int) -> bool:
    found = False
    for i in range(accesses.write_first[t], accesses.write_first[t + 1]):
        found |= accesses.write_key[i] == key
    return found


@inlined
def _overwritten_by(accesses: Accesses, found: Forced, orders: int, width: int, t: int, u: int) -> None:
    """The rules for u, which precedes t and wrote keys that t read from others."""
    for j in range(accesses.read_first[t], accesses.read_first[t + 1]):
        w, key = accesses.read_writer[j], accesses.read_key[j]
        is_other = u != w and u != t
        if not is_other or not _writes(accesses, u, key):
            continue
        if w == INITIAL and orders == ONE_ORDER:
            note_overwrites(found, width, key, t, w, u)
        else:
            note_overwritten(found, width, key, t, w, u)


@inlined
def _follows(accesses: Accesses, found: Forced, width: int, t: int, u: int, version: int) -> None:
    """The rules for u, which wrote the same key as t and committed after t, the writer of the version, began."""
    key = accesses.write_key[version]
    if width > 1:
        note_exclusive(found, width, key, t, u)
    for j in range(accesses.readers_first[version], accesses.readers_first[version + 1]):
        if accesses.readers[j] != u:
            note_overwrites(found, width, key, accesses.readers[j], t, u)
