"""Whether an order of events explains all reads. Every order is replayed before a decision is VALID."""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int32
from checkers.transactions.orders.events import Accesses
from harness.compiled import compiled


def explains(accesses: Accesses, width: int, order: Int32) -> bool:
    """Whether each read is of the last write before, and at snapshot isolation no writers of a key overlap."""
    return bool(_explains(order, width, accesses))


@compiled
def _explains(order: Int32, width: int, accesses: Accesses) -> bool:
    read_first, write_first, write_key = accesses.read_first, accesses.write_first, accesses.write_key
    keys = len(accesses.writers_first) - 1
    current = len(write_key) + np.arange(keys)
    held = np.zeros(keys, dtype=np.int32)
    for event in order:
        t = event // width
        if event == t * width:
            for i in range(read_first[t], read_first[t + 1]):
                if current[accesses.read_key[i]] != accesses.read_version[i]:
                    return False
            for i in range(write_first[t], write_first[t + 1]):
                if held[write_key[i]] > 0:
                    return False
                held[write_key[i]] += 1
        if event == t * width + width - 1:
            for i in range(write_first[t], write_first[t + 1]):
                held[write_key[i]] -= 1
                current[write_key[i]] = i
    return True
