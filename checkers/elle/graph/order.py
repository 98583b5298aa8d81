"""An order of transactions that no edge contradicts: a hint for deciders where a history has no cycles."""

from __future__ import annotations

import heapq

import numpy as np

from checkers.kernels.columns import Int32
from checkers.kernels.compiled import compiled


@compiled
def topological_order(nodes: int, source: Int32, target: Int32) -> Int32:
    """All nodes, each behind those from which an edge leads to it; of several that may come next always the smallest.

    Shorter than `nodes` if there is a cycle: then those on cycles, and behind them, are missing. Memory: about 25
    bytes a node and 4 an edge.
    """
    first = np.zeros(nodes + 1, dtype=np.int64)
    waits = np.zeros(nodes, dtype=np.int32)
    for i in range(len(source)):
        first[source[i] + 1] += 1
        waits[target[i]] += 1
    for u in range(nodes):
        first[u + 1] += first[u]
    targets = np.empty(len(source), dtype=np.int32)
    for i in range(len(source) - 1, -1, -1):
        first[source[i] + 1] -= 1
        targets[first[source[i] + 1]] = target[i]
    # first[u + 1] is now where u begins.
    ready = [np.int64(u) for u in range(nodes) if waits[u] == 0]
    order = np.empty(nodes, dtype=np.int32)
    count = 0
    while len(ready):
        u = int(heapq.heappop(ready))
        order[count] = u
        count += 1
        for i in range(first[u + 1], first[u + 2] if u + 2 <= nodes else len(source)):
            v = targets[i]
            waits[v] -= 1
            if waits[v] == 0:
                heapq.heappush(ready, np.int64(v))
    return order[:count]
