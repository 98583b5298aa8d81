"""Alternatives that cannot all be taken, as clauses: what the SAT solver is given, and what refutations are made of."""

from __future__ import annotations

from dataclasses import dataclass

from checkers.transactions.orders.subproblem import Refutation

CONFLICTS = 200_000
"""The solver gives up at so many."""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """Alternatives that cannot all be taken, ascending, and why."""

    labels: tuple[int, ...]
    refutation: Refutation
    cycles: int
    """In the refutation."""


def literal(label: int) -> int:
    """Of an alternative, for the solver: the negative of its choice's number for the first one."""
    return label // 2 + 1 if label & 1 else -(label // 2 + 1)
