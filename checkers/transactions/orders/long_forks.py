"""What is left of a history that is not one of snapshots once reads are taken out by which it contradicts itself.

    T1 writes a = 1,  T2 writes b = 1,  T3 reads a = 1 and b = 0,  T4 reads b = 1 and a = 0

Snapshots forbid that long fork, parallel snapshots do not. Without what T3 reads of b there is an order of snapshots,
T2 T4 T1 T3; and if T3 has seen nothing of what came of T2, that is one of parallel snapshots as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int64
from checkers.transactions.evidence.proof import Because
from checkers.transactions.history.committed import INITIAL, Committed
from checkers.transactions.orders.bounded_propagation import forced_by_short_paths
from checkers.transactions.orders.events import CODE, Edges, Events, ExternalOrder, Isolation, events
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.strong_components import strong_components

ROUNDS = 16
"""So often reads are taken out."""
LARGEST = 64
"""Contradictions with more events are no forks here and there."""


def without_forks(committed: Committed, kept: ExternalOrder, pick: int) -> tuple[Events, bool] | None:
    """Events of snapshots of which short paths say nothing, and whether reads were taken out; None if these would be
    too many. `pick`: which one of those that would do, of each contradiction.

    Whoever was read from still comes before the reader."""
    out = np.zeros(len(committed.key), dtype=np.bool_)
    for _ in range(ROUNDS):
        left = _without(committed, out, kept)
        found = forced_by_short_paths(left, OrderKind.TOTAL)
        if not found.cyclic:
            return left, bool(out.any())
        edges = _contradictory(found.edges, left.size, pick)
        if edges is None:
            return None
        reads = zip(*(column[edges].tolist() for column in (found.edges.reader, found.edges.key)), strict=True)
        for reader, key in reads:
            here = slice(committed.first[reader], committed.first[reader + 1])
            out[here] |= (committed.key[here] == key) & (committed.writer[here] >= INITIAL)
    return None


def _without(committed: Committed, out: Bool, kept: ExternalOrder) -> Events:
    before = np.concatenate(([0], np.cumsum(~out)))
    left = replace(committed, first=before[committed.first], key=committed.key[~out], writer=committed.writer[~out])
    known = events(left, Isolation.SNAPSHOT, kept)
    read = np.flatnonzero(out & (committed.writer != INITIAL))
    writer, reader, key = committed.writer[read], committed.transaction[read], committed.key[read]
    also = Edges.of(known.commit(writer), known.begin(reader), Because.READ, key)
    return replace(known, base=Edges.joined([known.base, also]))


def _contradictory(edges: Edges, size: int, pick: int) -> Int64 | None:
    """Of each strong component an edge by which somebody missed what was overwritten; None if one is too large, or
    has none."""
    number = strong_components(*followers(edges.source, edges.target, size))
    sizes = np.bincount(number)
    inside = (number[edges.source] == number[edges.target]) & (edges.because == CODE[Because.OVERWRITES])
    missed = np.flatnonzero(inside)
    several, count = np.unique(number[edges.source[missed]], return_counts=True)
    by_component = missed[np.argsort(number[edges.source[missed]], kind="stable")]
    if sizes.max() > LARGEST or (np.bincount(several, minlength=len(sizes)) < (sizes > 1)).any():
        return None
    picked: Int64 = by_component[np.cumsum(count) - count + pick % count]
    return picked
