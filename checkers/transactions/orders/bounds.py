"""How much work a decision may take. Work is bounded, not time, so the same history gets the same answer everywhere.

Where a history breaks the demanded model, decisions about other models only say how much of the promise is left. They
are worth less, so they are given up sooner.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Bounds:
    steps: int
    """How many events a long rearrangement of an order may look at for each event that there is."""
    cells: int
    """The most entries in all clocks together, of 4 bytes each. If they do not suffice for all chains, what is forced
    through the remaining ones is not found."""
    orders: int
    """How many times an order is tried."""
    transactions: int
    """A component with more transactions is left open."""
    choices: int
    """A component is left open, too, if it has more choices between two orders of writers."""


DEMANDED = Bounds(steps=2_000, cells=1 << 27, orders=64, transactions=10_000, choices=50_000)
BESIDE = Bounds(steps=200, cells=1 << 24, orders=16, transactions=2_000, choices=5_000)
"""The bounds for models that nobody demanded, where the demanded one is broken."""
