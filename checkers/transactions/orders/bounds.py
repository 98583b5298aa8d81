"""What a decision may cost, so that the same history gets the same answer everywhere: bounds of work, none of time.

A model that nobody demanded, of a history that breaks what was demanded, says only how much of the promise is left.
That is worth less, so it is left open sooner.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Bounds:
    steps: int
    """So many events are looked at for each that there is, where an order is rearranged at length."""
    cells: int
    """Numbers in all clocks together: 4 bytes each. Where they are too few for all chains, what is forced through the
    others is not found."""
    orders: int
    """So often an order is tried."""
    transactions: int
    """Components with more are left open,"""
    choices: int
    """and so are those with more orders of two writers to choose."""


DEMANDED = Bounds(steps=2_000, cells=1 << 27, orders=64, transactions=10_000, choices=50_000)
BESIDE = Bounds(steps=200, cells=1 << 24, orders=16, transactions=2_000, choices=5_000)
"""Of what nobody demanded, where the demanded model is broken."""
