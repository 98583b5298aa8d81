"""The edges of a graph, grouped by their sources."""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int32, Int64
from checkers.kernels.gap_filling import next_place, require_filled
from harness.compiled import compiled


def followers(source: Int32, target: Int32, size: int) -> tuple[Int64, Int32]:
    """(first, targets): the targets of node u are targets[first[u]:first[u + 1]], in the order of the edges."""
    first, edges = by_source(source, size)
    return first, target[edges]


@compiled
def by_source(source: Int32, size: int) -> tuple[Int64, Int32]:
    """(first, edges): the edges from node u are edges[first[u]:first[u + 1]], ascending."""
    first = np.zeros(size + 1, dtype=np.int64)
    for u in source:
        first[u + 1] += 1
    for u in range(size):
        first[u + 1] += first[u]
    filled = first[:-1].copy()
    edges = np.empty(len(source), dtype=np.int32)
    for i in range(len(source)):
        edges[next_place(filled, first, source[i])] = i
    require_filled(filled, first)
    return first, edges
