"""Whether an order of events explains all reads. Every order is replayed before a decision is VALID."""

from __future__ import annotations

import numpy as np

from checkers.api.verdict import Verdict
from checkers.kernels.columns import Int32
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.orders.events import Accesses, Events
from harness.compiled import compiled


def replayed(events: Events, order: Int32) -> Decision:
    """VALID with an order of all events and moments in which the search has found nothing wrong."""
    order = events.without_moments(order)
    assert explains(events.accesses, events.width, order), "an order without a violation explains everything"
    return Decision(verdict=Verdict.VALID, order=order)


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
