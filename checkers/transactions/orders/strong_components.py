"""Strong components of a graph of events: which events precede each other."""

from __future__ import annotations

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Int32, Int64
from harness.compiled import compiled


def has_cycle(source: Int32, target: Int32, size: int) -> bool:
    """Whether edges between different events make a cycle."""
    first, targets = followers(source, target, size)
    return bool(strong_components(first, targets).max(initial=-1) + 1 < size)


@compiled
def strong_components(first: Int64, targets: Int32) -> Int32:
    """A number for each event: the same for those that precede each other."""
    size = len(first) - 1
    number = np.full(size, -1, dtype=np.int32)
    seen = np.full(size, -1, dtype=np.int32)
    lowest = np.empty(size, dtype=np.int32)
    at = first[:-1].copy()
    path = np.empty(size, dtype=np.int32)
    pending = np.empty(size, dtype=np.int32)
    visited, found = 0, 0
    for root in range(size):
        if seen[root] >= 0:
            continue
        path[0] = root
        length, held = 1, 1
        pending[0] = root
        seen[root] = lowest[root] = visited
        visited += 1
        while length > 0:
            e = path[length - 1]
            if at[e] < first[e + 1]:
                f = targets[at[e]]
                at[e] += 1
                if seen[f] < 0:
                    seen[f] = lowest[f] = visited
                    visited += 1
                    path[length] = f
                    pending[held] = f
                    length += 1
                    held += 1
                elif number[f] < 0:
                    lowest[e] = min(lowest[e], seen[f])
                continue
            length -= 1
            if length > 0:
                lowest[path[length - 1]] = min(lowest[path[length - 1]], lowest[e])
            if lowest[e] == seen[e]:
                while True:
                    held -= 1
                    number[pending[held]] = found
                    if pending[held] == e:
                        break
                found += 1
    return number
