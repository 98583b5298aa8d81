"""How much work a decision may take. Work is bounded, not time, so the same history gets the same answer everywhere.

Where a history breaks the demanded model, decisions about other models only say how much of the promise is left. They
are worth less, so they are given up sooner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from checkers.api.verdict import EXAMPLES, Verdict
from checkers.transactions.evidence.proof import Bound, Decision, Established
from checkers.transactions.history.committed import Committed

MAX_CLOCK_CELLS = 1 << 21
"""If clocks have more entries than this, an order that the store may have followed is sought at length before clocks
are made."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    steps: int
    """How many events a long search in windows of time may look at for each event that there is."""
    cells: int
    """The most entries in all clocks together, of 4 bytes each. If they do not suffice for all chains, what is forced
    through the remaining ones is not found."""
    complete_steps: int
    """How many events a search without windows may look at before it is given up."""


DEMANDED = Bounds(steps=2_000, cells=1 << 27, complete_steps=1 << 24)
BESIDE = Bounds(steps=200, cells=1 << 24, complete_steps=1 << 20)
"""The bounds for models that nobody demanded, where the demanded one is broken."""


def vector_clocks_too_large(committed: Committed) -> bool:
    """Whether clocks would have more than MAX_CLOCK_CELLS entries."""
    return len(committed) * (1 + int(committed.session.max(initial=0))) > MAX_CLOCK_CELLS


def given_up_at_once(committed: Committed) -> Decision:
    """The decision on a model for which no order was tried, because clocks would take too much time and memory."""
    left = len(committed) - 1
    return Decision(
        verdict=Verdict.UNKNOWN,
        open=(tuple(range(1, 1 + min(left, EXAMPLES))),),
        established=Established(bound=Bound.TIME, components=1, transactions=left),
    )


def given_up_before(stronger: Decision) -> Decision:
    """The decision on a model that was not looked at before the time was up. That a stronger one is broken says nothing
    about it."""
    established = stronger.established or Established(bound=Bound.TIME)
    return Decision(verdict=Verdict.UNKNOWN, open=stronger.open, established=replace(established, bound=Bound.TIME))
