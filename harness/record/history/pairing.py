"""Which completion belongs to which invocation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NO_PARTNER = -1


def pairs(
    index: npt.NDArray[np.int64], process: npt.NDArray[np.int32], invoked: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """For each row the position (in these arrays) of its partner, or NO_PARTNER.

    An invocation's partner is its completion and the other way round. The rows may be a part of a
    history, in any order, as long as both rows of a pair are in it: all rows of one key, say.
    `invoked` says which rows are invocations. O(n log n), nothing of it in Python.
    """
    partner = np.full(len(index), NO_PARTNER, dtype=np.int64)
    order = np.lexsort((index, process))
    same_process = process[order[1:]] == process[order[:-1]]
    adjacent = same_process & invoked[order[:-1]] & ~invoked[order[1:]]
    first, second = order[:-1][adjacent], order[1:][adjacent]
    partner[first] = second
    partner[second] = first
    return partner
