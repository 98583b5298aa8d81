"""Which completion belongs to which invocation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.operation import NEMESIS

NO_PARTNER = -1


def pairs(
    index: npt.NDArray[np.int64], process: npt.NDArray[np.int32], invoked: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """For each row the position (in these arrays) of its partner, or NO_PARTNER.

    An invocation's partner is its completion and the other way round. The rows may be a part of a
    history, in any order, as long as both rows of a pair are in it: all rows of one key, say.
    `invoked` says which rows are invocations. Linear where they are in order and the processes are close to each
    other, else O(n log n); nothing of it in Python.
    """
    partner = np.full(len(index), NO_PARTNER, dtype=np.int64)
    order = by_process(process) if np.all(index[1:] > index[:-1]) else np.lexsort((index, process))
    same_process = process[order[1:]] == process[order[:-1]]
    adjacent = same_process & invoked[order[:-1]] & ~invoked[order[1:]]
    first, second = order[:-1][adjacent], order[1:][adjacent]
    partner[first] = second
    partner[second] = first
    return partner


def pairs_of_clients(
    index: npt.NDArray[np.int64], process: npt.NDArray[np.int32], invoked: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The same where some rows may be of the nemesis, whose rows have no partners."""
    mine = np.flatnonzero(process != NEMESIS)
    if len(mine) == len(index):
        return pairs(index, process, invoked)
    partner = np.full(len(index), NO_PARTNER, dtype=np.int64)
    found = pairs(index[mine], process[mine], invoked[mine])
    partner[mine] = np.where(found == NO_PARTNER, NO_PARTNER, mine[found])
    return partner


def by_process(process: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The rows in order of their processes, and in their own order within each."""
    least = process.min() if len(process) else 0
    if len(process) == 0 or int(process.max()) - int(least) < 1 << 16:
        # Sixteen bits are sorted by their digits, several times as fast.
        return np.argsort((process - least).astype(np.uint16), kind="stable")
    return np.argsort(process, kind="stable")
