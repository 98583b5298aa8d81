"""Sorting inside of kernels: numba's own takes as long to compile as ten kernels do, and once more for each of them."""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled


@compiled
def ascending(keys: Int64) -> Int64:
    """Positions in ascending order of their keys; ties keep their order. Merges runs: what is sorted costs one pass."""
    order = np.empty(len(keys), dtype=np.int64)
    for i in range(len(keys)):
        order[i] = i
    spare = np.empty(len(keys), dtype=np.int64)
    width = 1
    while width < len(keys):
        for low in range(0, len(keys), 2 * width):
            middle = min(low + width, len(keys))
            high = min(middle + width, len(keys))
            if middle < high and keys[order[middle]] < keys[order[middle - 1]]:
                i, j = low, middle
                for at in range(low, high):
                    if j == high or (i < middle and keys[order[i]] <= keys[order[j]]):
                        spare[at] = order[i]
                        i += 1
                    else:
                        spare[at] = order[j]
                        j += 1
                for at in range(low, high):
                    order[at] = spare[at]
        width *= 2
    return order
