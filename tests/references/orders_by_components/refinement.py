"""Orders are tried, and where one is wrong, the versions there are solved before the next one is: what all models
that are solved have in common, whatever they call wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from checkers.api.verdict import Verdict
from checkers.kernels.columns import Int32
from checkers.transactions.evidence.proof import Decision, Proof
from checkers.transactions.orders.events import Events
from checkers.transactions.orders.proof_builder import contradiction
from checkers.transactions.orders.saturation import Saturated
from tests.references.orders_by_components.order_constraints import on_cycles, surroundings
from tests.references.orders_by_components.solve import solved
from tests.references.orders_by_components.subproblem import Component, Refutation

NO_PART = -1

MOST = 2
"""If more than one in so many transactions are to be put in order together, all are: the others would follow one by
one, and each time all would be solved anew."""
WHOLE = 2_000
"""But no more than so many."""


ORDERS = 64
"""How many times an order is tried."""
TRANSACTIONS = 10_000
"""A component with more transactions is left open."""
CHOICES = 50_000
"""A component is left open, too, if it has more choices between two orders of writers."""


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """Transactions where an order is wrong."""

    components: Sequence[Int32]


@dataclass(frozen=True, kw_only=True)
class OrderTheory:
    """How a model tries an order, and what is left to choose and to refute where that fails."""

    tried: Callable[[Events, Int32, Int32], Decision | Counterexample]
    """From edges (sources, targets) without a cycle: a decision, or where the order that was tried is wrong."""
    component: Callable[[Saturated, Int32], Component]
    """What is open between these transactions."""
    refuted: Callable[[Saturated, Component, Refutation], Proof]


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Transactions whose versions are put in order together; and how, as edges, once they are."""

    transactions: Int32
    source: Int32
    target: Int32


class Repair:
    """Orders are tried; where one fails, the versions there are put in order before the next one is."""

    def __init__(self, found: Saturated, theory: OrderTheory) -> None:
        self.found = found
        self.theory = theory
        self.parts: dict[int, _Part] = {}
        self.part_of = np.full(len(found.events.committed), NO_PART, dtype=np.int32)

    def decision(self) -> Decision:
        if self.found.cyclic:
            return contradiction(self.found)
        known = self.found.events
        for _ in range(ORDERS):
            source, target = self._edges()
            wrong: Sequence[Int32] = on_cycles(known, source, target) if self.parts else []
            if not wrong:
                answer = self.theory.tried(known, source, target)
                if isinstance(answer, Decision):
                    return answer
                wrong = answer.components
            decision = self._solve(wrong)
            if decision:
                return decision
        return Decision(verdict=Verdict.UNKNOWN)

    def _edges(self) -> tuple[Int32, Int32]:
        edges, parts = self.found.edges, self.parts.values()
        return (
            np.concatenate((edges.source, *(part.source for part in parts))),
            np.concatenate((edges.target, *(part.target for part in parts))),
        )

    def _solve(self, wrong: Sequence[Int32]) -> Decision | None:
        """Put the versions in order where the order was wrong."""
        is_open = False
        for number in self._joined(wrong):
            transactions = self.parts[number].transactions
            open_ = self.theory.component(self.found, transactions) if len(transactions) <= TRANSACTIONS else None
            solution = solved(open_) if open_ is not None and len(open_) <= CHOICES else None
            if open_ is None or solution is None or solution.verdict is Verdict.UNKNOWN:
                is_open = True
                continue
            if solution.verdict is Verdict.INVALID:
                refutation = solution.refutation
                proof = self.theory.refuted(self.found, open_, refutation) if refutation else None
                return Decision(verdict=Verdict.INVALID, proof=proof)
            source, target = open_.kept(solution.taken).T
            self.parts[number] = _Part(transactions=transactions, source=source, target=target)
        return Decision(verdict=Verdict.UNKNOWN) if is_open else None

    def _joined(self, wrong: Sequence[Int32]) -> list[int]:
        """New parts: what was wrong with its surroundings, and with all parts that have some of these."""
        nothing = np.zeros(0, dtype=np.int32)
        fresh = []
        for transactions in wrong:
            around = surroundings(self.found.events, transactions)
            touched = [part for part in np.unique(self.part_of[around]).tolist() if part != NO_PART]
            around = np.unique(np.concatenate((around, *(self.parts.pop(part).transactions for part in touched))))
            if len(around) * MOST > len(self.part_of) and len(self.part_of) - 1 <= WHOLE:
                self.parts.clear()
                around = np.arange(1, len(self.part_of), dtype=np.int32)
            number = int(around[0])
            self.part_of[around] = number
            self.parts[number] = _Part(transactions=around, source=nothing, target=nothing)
            fresh.append(number)
        return [number for number in dict.fromkeys(fresh) if number in self.parts]
