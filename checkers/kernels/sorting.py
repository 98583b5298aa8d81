"""Sorting inside of kernels: numba's own takes as long to compile as ten kernels do, and once more for each of them."""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled


@compiled
def ascending(keys: Int64) -> Int64:
    """Positions in ascending order of their keys; ties keep their order. It merges runs where they overlap, so sorted
    keys cost one pass, and nearly sorted ones little more."""
    order = np.empty(len(keys), dtype=np.int64)
    for i in range(len(keys)):
        order[i] = i
    spare = np.empty(len(keys), dtype=np.int64)
    width = 1
    while width < len(keys):
        for low in range(0, len(keys), 2 * width):
            middle = min(low + width, len(keys))
            high = min(middle + width, len(keys))
            if middle == high or keys[order[middle - 1]] <= keys[order[middle]]:
                continue
            least, greatest = keys[order[middle]], keys[order[middle - 1]]
            first, last = middle - 1, middle + 1
            while first > low and keys[order[first - 1]] > least:
                first -= 1
            while last < high and keys[order[last]] < greatest:
                last += 1
            for at in range(first, middle):
                spare[at] = order[at]
            i, j = first, middle
            for at in range(first, last):
                if j == last or (i < middle and keys[spare[i]] <= keys[order[j]]):
                    order[at] = spare[i]
                    i += 1
                else:
                    order[at] = order[j]
                    j += 1
        width *= 2
    return order
