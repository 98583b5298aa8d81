"""Zones of the chains of registers, which say whether chains can be put in a row.

A chain must come before another if one of its operations ended before one of the other's began: if the least end of
the one is below the greatest start of the other. Such a relation has a cycle only if two chains are each before the
other, and that is seen from their zones: [least end, greatest start] is a forward zone; where the start is less, a
backward zone. There is a row exactly if no two forward zones overlap and no backward zone lies inside a forward one.

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
"""When a register got its initial value."""


class Zones(NamedTuple):
    """Of all chains that have operations, in ascending order of `low`."""

    chain: Int64
    owner: Int64
    low: Int64
    high: Int64
    forward: Bool
    """`low` is the least end and `high` the greatest start; the other way round if not."""


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
    """By register the first two zones whose chains must each come before the other; shape (count, 2)."""
    owner, low, high, forward = found.owner, found.low, found.high, found.forward
    pairs = np.full((count, 2), -1, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    # Of the backward zones that began since the last forward one, the one that is over first.
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
    """When the chains of one register may take effect, one behind the other, if no two zones are crossed.

    A forward zone does where it begins; a backward one, which may at any moment of it, where it begins or the forward
    zone around that is over.
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
