"""Alternatives that cannot all be taken, as clauses: what the SAT solver is given, and what refutations are made of."""

from __future__ import annotations

from dataclasses import dataclass

from tests.references.orders_by_components.subproblem import Refutation

CONFLICTS = 200_000
"""The number of conflicts at which the solver gives up."""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """Alternatives that cannot all be taken, ascending, and why."""

    labels: tuple[int, ...]
    refutation: Refutation
    cycles: int
    """How many cycles the refutation has."""


def literal(label: int) -> int:
    """The solver's literal for an alternative: the number of its choice, negative for the first alternative."""
    return label // 2 + 1 if label & 1 else -(label // 2 + 1)
