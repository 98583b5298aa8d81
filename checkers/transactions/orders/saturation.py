"""Adds every edge that the known order forces until nothing more follows. The result is a graph of edges, each with its
reason, and a clock for each event.

Sweeps over the graph in topological order apply the rules of `propagation` and update clocks. An event's clock has an
entry for each chain: the last event there that precedes it. Chains in place of reachability of all pairs are ours.

This is always sound. It finds all that the rules force if every event is on a chain and all candidates are looked at;
`events` says when they are not. Even then a history without a contradiction need not have an order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkers import search_budget
from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.candidates import Candidates, candidates
from checkers.transactions.orders.events import Accesses, Edges, Events
from checkers.transactions.orders.propagation import (
    Forced,
    OrderKind,
    edges_of,
    is_full,
    note_exclusive,
    note_overwrites,
    note_overwritten,
)
from checkers.transactions.orders.strong_components import has_cycle
from harness.compiled import compiled, inlined

SWEEPS = 64
"""The most sweeps. Usually a few are enough; if a history needs more, it is left with what was found."""

NOTHING = -1
AGAIN, DONE, CYCLE = range(3)


ONE_ORDER = int(OrderKind.TOTAL)


class Clocks(NamedTuple):
    clock: Int32
    """int32[events, chains]: the place of the last event on the chain that precedes the event, or NOTHING."""
    news: Bool
    """bool[events]: whether the clock says more than the clocks of the event's followers."""
    chain: Int32
    """int32[events]: the chain of each event, or NO_CHAIN."""
    place: Int32
    """int32[events]: the place of each event on its chain; places ascend along it."""


@dataclass(frozen=True, kw_only=True)
class Saturated:
    events: Events
    edges: Edges
    clocks: Clocks
    cyclic: bool
    """Whether the edges make a cycle. If so, the clocks must not be used."""

    @property
    def clock(self) -> Int32:
        return self.clocks.clock


def saturated(events: Events, orders: OrderKind) -> Saturated:
    """The edges and clocks once nothing more follows. It stops at the first contradiction, where the edges make a
    cycle, and begins no further sweep once searches are over."""
    open_writers = candidates(events)
    edges = [events.base]
    clock = np.full((events.size, max(events.chains, 1)), NOTHING, dtype=np.int32)
    clocks = Clocks(clock, np.ones(events.size, dtype=np.bool_), events.chain, events.place)
    room = max(events.size, 1 << 10)
    ended = AGAIN
    for _ in range(SWEEPS):
        known = Edges.joined(edges)
        first, targets = followers(known.source, known.target, events.size)
        found, ended = _swept(first, targets, clocks, events.accesses, open_writers, int(orders), events.width, room)
        edges = [known, edges_of(found)]
        if ended != AGAIN or search_budget.is_over():
            break
    known = Edges.joined(edges)
    # Not all clocks know of the edges that the last sweep added, and two of these may make a cycle.
    cyclic = ended == CYCLE or (ended == AGAIN and has_cycle(known.source, known.target, events.size))
    return Saturated(events=events, edges=known, clocks=clocks, cyclic=cyclic)


@compiled
def _swept(
    first: Int64,
    targets: Int32,
    clocks: Clocks,
    accesses: Accesses,
    candidates: Candidates,
    orders: int,
    width: int,
    room: int,
) -> tuple[Int32, int]:
    """New edges as rows of `Forced`, and how the sweep ended. CYCLE: the last edge closes a cycle. DONE: the rules have
    seen complete clocks. AGAIN: what was found asks for another sweep.

        T1 writes x = 1;  T2 writes x = 2, y = 1;  T3 reads y = 1, x = 1;  T4 reads x = 2

        known:  T1 ──READ──► T3,  T2 ──READ──► T3,  T2 ──READ──► T4
        T3 reads x from T1 and T2, which wrote x too, precedes T3:  T2 ──OVERWRITTEN──► T1
        T4 reads x from T2, which now precedes T1:                  T4 ──OVERWRITES──► T1, if there is one order
    """
    size = len(first) - 1
    in_transactions = (len(accesses.read_first) - 1) * width
    waiting = np.zeros(size, dtype=np.int32)
    for e in targets:
        waiting[e] += 1
    order = np.empty(size, dtype=np.int32)
    found = Forced(np.empty((6, room), dtype=np.int32), np.zeros(1, dtype=np.int64))
    changed = False
    at, ready = 0, 0
    for e in range(size):
        if waiting[e] == 0:
            order[ready] = e
            ready += 1
    while at < ready:
        event = order[at]
        at += 1
        for i in range(first[event], first[event + 1]):
            follower = targets[i]
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order[ready] = follower
                ready += 1
            if clocks.news[event]:
                changed |= _carry(clocks, event, follower)
        clocks.news[event] = False
        if width <= event < in_transactions and _closes_cycle(
            clocks, accesses, candidates, found, orders, width, event
        ):
            return found.rows[:, : found.used[0]].copy(), CYCLE
    if ready < size:
        return found.rows[:, : found.used[0]].copy(), CYCLE
    again = found.used[0] > 0 or (changed and orders == ONE_ORDER)
    return found.rows[:, : found.used[0]].copy(), AGAIN if again else DONE


@inlined
def _closes_cycle(
    clocks: Clocks, accesses: Accesses, candidates: Candidates, found: Forced, orders: int, width: int, event: int
) -> bool:
    """Adds the edges forced by what a transaction does at an event, until one closes a cycle."""
    t = event // width
    if event == t * width:
        for i in range(accesses.read_first[t], accesses.read_first[t + 1]):
            if orders != ONE_ORDER:
                if _seen_forces(clocks, accesses, candidates, found, t, i):
                    return True
                continue
            _narrow_read(clocks, accesses, candidates, t, i, width)
            if _read_forces(clocks, accesses, candidates, found, t, i, width):
                return True
    if width > 1 and event == t * width + width - 1:
        for i in range(accesses.write_first[t], accesses.write_first[t + 1]):
            _narrow_write(clocks, accesses, candidates, t, i, width)
            if _write_forces(clocks, accesses, candidates, found, t, i, width):
                return True
    return False


@inlined
def _seen_forces(clocks: Clocks, accesses: Accesses, candidates: Candidates, found: Forced, t: int, read: int) -> bool:
    """OVERWRITTEN: another writer of the key that t sees precedes the one that t reads from."""
    w, key = accesses.read_writer[read], accesses.read_key[read]
    for j in range(candidates.read_low[read], candidates.read_high[read]):
        u = accesses.writers[j]
        is_other = u != t and u != w
        if not is_other or is_full(found) or not precedes(clocks, u, t):
            continue
        if w == INITIAL or is_open(clocks, u, w):
            note_overwritten(found, 1, key, t, w, u)
            if w == INITIAL or _closes(clocks, found):
                return True
    return False


@inlined
def _read_forces(
    clocks: Clocks, accesses: Accesses, candidates: Candidates, found: Forced, t: int, read: int, width: int
) -> bool:
    """OVERWRITES: t, which reads from w, precedes what comes after w; OVERWRITTEN: what precedes t precedes w."""
    w, key, event = accesses.read_writer[read], accesses.read_key[read], t * width
    for j in range(candidates.read_low[read], candidates.read_high[read]):
        u = accesses.writers[j]
        is_other = u != t and u != w
        if not is_other or is_full(found):
            continue
        done = u * width + width - 1
        overwrites = (w == INITIAL or precedes(clocks, w * width, done)) and is_open(clocks, event, done)
        if overwrites:
            note_overwrites(found, width, key, t, w, u)
            if _closes(clocks, found):
                return True
        if w == INITIAL or not precedes(clocks, done, event) or not is_open(clocks, done, w * width):
            continue
        note_overwritten(found, width, key, t, w, u)
        if _closes(clocks, found):
            return True
    return False


@inlined
def _write_forces(
    clocks: Clocks, accesses: Accesses, candidates: Candidates, found: Forced, t: int, write: int, width: int
) -> bool:
    """EXCLUSIVE: another writer of the key that began before t committed committed before t began."""
    for j in range(candidates.write_low[write], candidates.write_high[write]):
        u = accesses.writers[j]
        done, begun = u * width + width - 1, t * width
        if u == t or is_full(found) or not precedes(clocks, u * width, begun + width - 1):
            continue
        if is_open(clocks, done, begun):
            note_exclusive(found, width, accesses.write_key[write], u, t)
            if _closes(clocks, found):
                return True
    return False


@inlined
def _narrow_read(clocks: Clocks, accesses: Accesses, candidates: Candidates, t: int, read: int, width: int) -> None:
    """Leaves out writers at either end that are known to come before w or after t."""
    w = accesses.read_writer[read]
    while candidates.read_low[read] < candidates.read_high[read]:
        u = accesses.writers[candidates.read_low[read]]
        is_other = u != t and u != w
        if is_other and (w == INITIAL or not precedes(clocks, u * width + width - 1, w * width)):
            break
        candidates.read_low[read] += 1
    while candidates.read_low[read] < candidates.read_high[read]:
        u = accesses.writers[candidates.read_high[read] - 1]
        if u != t and u != w and not precedes(clocks, t * width, u * width + width - 1):
            break
        candidates.read_high[read] -= 1


@inlined
def _narrow_write(clocks: Clocks, accesses: Accesses, candidates: Candidates, t: int, write: int, width: int) -> None:
    """Leaves out writers at either end that are known to have committed before t began, or to begin after t."""
    while candidates.write_low[write] < candidates.write_high[write]:
        u = accesses.writers[candidates.write_low[write]]
        if u != t and not precedes(clocks, u * width + width - 1, t * width):
            break
        candidates.write_low[write] += 1
    while candidates.write_low[write] < candidates.write_high[write]:
        u = accesses.writers[candidates.write_high[write] - 1]
        if u != t and not precedes(clocks, t * width + width - 1, u * width):
            break
        candidates.write_high[write] -= 1


@inlined
def precedes(clocks: Clocks, source: int, target: int) -> bool:
    """Whether the source precedes the target, as far as the chains say."""
    chain = clocks.chain[source]
    return bool(chain >= 0 and clocks.clock[target, chain] >= clocks.place[source])


@inlined
def is_open(clocks: Clocks, source: int, target: int) -> bool:
    """Whether the source is on a chain and is not known to precede the target."""
    chain = clocks.chain[source]
    return bool(chain >= 0 and clocks.clock[target, chain] < clocks.place[source])


@inlined
def _closes(clocks: Clocks, found: Forced) -> bool:
    """Whether the edge that was found last closes a cycle. If not, clocks are updated by it."""
    source, target = found.rows[0, found.used[0] - 1], found.rows[1, found.used[0] - 1]
    if precedes(clocks, target, source):
        return True
    _carry(clocks, source, target)
    return False


@inlined
def _carry(clocks: Clocks, source: int, target: int) -> bool:
    """Updates the target's clock, because it comes after the source, and returns whether that changed it."""
    mine, theirs = clocks.clock[target], clocks.clock[source]
    chain, place = clocks.chain[source], clocks.place[source]
    news = False
    for c in range(len(theirs)):
        news |= theirs[c] > mine[c]
        mine[c] = max(theirs[c], mine[c])
    if chain >= 0 and place > mine[chain]:
        mine[chain] = place
        news = True
    clocks.news[target] |= news
    return news
