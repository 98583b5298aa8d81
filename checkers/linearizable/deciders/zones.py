"""Zones of the chains of registers, which show whether chains can be put in a row.

A chain must come before another one if one of its operations ended before one of the other's began: if its least end is
below the other's greatest start. This relation has a cycle only if two chains must each come before the other, which
their zones show: [least end, greatest start] is a forward zone, or, if the start is less, a backward zone. There is a
row exactly if no two forward zones overlap and no backward zone lies inside a forward one.

    0 invoke write 1, 1 ok write 1, 2 invoke read, 3 ok read 1: the zone of value 1 is [1, 2], forward
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int64
from checkers.linearizable.deciders.chains import Chains
from checkers.linearizable.deciders.register_values import Registers
from harness.compiled import compiled

BEFORE_ALL = -1
"""The time at which a register got its initial value."""


class Zones(NamedTuple):
    """The zones of all chains that have operations, in ascending order of `low`."""

    chain: Int64
    owner: Int64
    low: Int64
    high: Int64
    forward: Bool
    """Whether `low` is the least end and `high` the greatest start. If not, it is the other way round."""


def zones(registers: Registers, chains: Chains) -> Zones:
    chain = np.flatnonzero(chains.ended >= 0)
    least = np.where(chain < registers.registers, BEFORE_ALL, registers.end[chains.ended[chain]])
    greatest = registers.start[chains.began[chain]]
    low = np.minimum(least, greatest)
    order = np.argsort(low, kind="stable")
    return Zones(
        chain[order],
        registers.owner[chain[order]],
        low[order],
        np.maximum(least, greatest)[order],
        (least < greatest)[order],
    )


@compiled
def crossed(found: Zones, count: int) -> Int64:
    """By register: the first two zones whose chains must each come before the other; shape (count, 2)."""
    owner, low, high, forward = found.owner, found.low, found.high, found.forward
    pairs = np.full((count, 2), -1, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    # The backward zone that is over first, of those that began since the last forward one.
    least = np.full(count, -1, dtype=np.int64)
    for zone in range(len(owner) + count):
        is_end = zone >= len(owner)
        r = zone - len(owner) if is_end else owner[zone]
        if pairs[r, 0] >= 0:
            continue
        if not is_end and not forward[zone]:
            if least[r] < 0 or high[zone] < high[least[r]]:
                least[r] = zone
            continue
        if last[r] >= 0:
            if least[r] >= 0 and high[least[r]] < high[last[r]]:
                pairs[r, 0] = last[r]
                pairs[r, 1] = least[r]
            elif not is_end and low[zone] < high[last[r]]:
                pairs[r, 0] = last[r]
                pairs[r, 1] = zone
        last[r] = zone
        least[r] = -1
    return pairs


@compiled
def seats(found: Zones) -> Int64:
    """When the chains of one register may take effect, one after the other, if no two zones are crossed.

    A chain with a forward zone takes effect where the zone begins. One with a backward zone could do so at any moment
    of the zone; it does so where the zone begins or, if a forward zone is around that, where that one is over.
    """
    low, high, forward = found.low, found.high, found.forward
    result = np.empty(len(low), dtype=np.int64)
    over = np.int64(BEFORE_ALL)
    for zone in range(len(low)):
        if forward[zone]:
            result[zone] = low[zone]
            over = high[zone]
        else:
            result[zone] = max(low[zone], over)
    return result
