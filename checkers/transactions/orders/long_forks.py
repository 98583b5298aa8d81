"""Takes reads out of a history that snapshots do not allow, until the rest does not contradict itself.

    T1 writes a = 1,  T2 writes b = 1,  T3 reads a = 1 and b = 0,  T4 reads b = 1 and a = 0

Snapshots forbid this long fork, parallel snapshots do not. Without T3's read of b there is an order for snapshots,
T2 T4 T1 T3. If T3 has seen nothing that depends on T2, it is also an order for parallel snapshots.
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
"""How many times reads are taken out at most."""
LARGEST = 64
"""A contradiction with more events than this is no isolated long fork."""


def without_forks(committed: Committed, kept: ExternalOrder, pick: int) -> tuple[Events, bool] | None:
    """(events for snapshots among which short paths find no contradiction, whether reads were taken out); None if too
    many would have to be. `pick`: which of the reads that could be taken out of each contradiction is.

    The writer that such a read was from still comes before the reader."""
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
    """For each strong component one edge from a reader to a writer whose version it missed (OVERWRITES); None if a
    component is too large or has no such edge."""
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
