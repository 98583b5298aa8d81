"""Orders are tried, and where one is wrong, the versions there are solved before the next one is: what all models
that are solved have in common, whatever they call wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from checkers import search_budget
from checkers.api.verdict import EXAMPLES, Verdict
from checkers.kernels.columns import Int32
from checkers.transactions.evidence.proof import Because, Bound, Decision, Established, Proof
from checkers.transactions.history.committed import Committed
from checkers.transactions.orders.bounds import Bounds
from checkers.transactions.orders.events import Events
from checkers.transactions.orders.order_constraints import on_cycles, surroundings
from checkers.transactions.orders.proof_builder import Argument
from checkers.transactions.orders.saturation import Saturated
from checkers.transactions.orders.solve import solved
from checkers.transactions.orders.subproblem import Component, Refutation

NO_PART = -1

MOST = 2
"""If more than one in so many transactions are to be put in order together, all are: the others would follow one by
one, and each time all would be solved anew."""
WHOLE = 2_000
"""But no more than so many: what is larger and has an order is for `order_search`."""


def rests_on(proof: Proof) -> set[Because]:
    """Reasons of all its steps."""
    found = set()
    pending = [proof]
    while pending:
        part = pending.pop()
        found |= {step.because for step in part.steps}
        pending += part.cases or ()
    return found


def contradiction(found: Saturated) -> Decision:
    argument = Argument(found)
    cycle = argument.cycle()
    return Decision(verdict=Verdict.INVALID, proof=Proof(steps=tuple(argument.steps), cycle=cycle))


def given_up_before(stronger: Decision) -> Decision:
    """Of a model that was not asked once the time had passed: a stronger one may be broken, and tells nothing."""
    established = stronger.established or Established(bound=Bound.TIME)
    return Decision(verdict=Verdict.UNKNOWN, open=stronger.open, established=replace(established, bound=Bound.TIME))


MAX_CLOCK_CELLS = 1 << 21
"""With more numbers in clocks, an order is rearranged at length before any is made."""


def vector_clocks_too_large(committed: Committed) -> bool:
    """Whether they would be about so many."""
    return len(committed) * (1 + int(committed.session.max(initial=0))) > MAX_CLOCK_CELLS


def given_up_at_once(committed: Committed) -> Decision:
    """Of a model for which no order was tried: clocks of so many transactions and sessions take long, and memory."""
    left = len(committed) - 1
    return Decision(
        verdict=Verdict.UNKNOWN,
        open=(tuple(range(1, 1 + min(left, EXAMPLES))),),
        established=Established(bound=Bound.TIME, components=1, transactions=left),
    )


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """Transactions where an order is wrong."""

    components: Sequence[Int32]
    is_all: bool = True
    """Without all of these transactions it would be right."""


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

    def __init__(self, found: Saturated, theory: OrderTheory, bounds: Bounds) -> None:
        self.found = found
        self.bounds = bounds
        self.theory = theory
        self.orders = self.conflicts = self.prefix = 0
        """As Established has them."""
        self.parts: dict[int, _Part] = {}
        self.part_of = np.full(len(found.events.committed), NO_PART, dtype=np.int32)

    def decision(self) -> Decision:
        if self.found.cyclic:
            return contradiction(self.found)
        known = self.found.events
        for _ in range(self.bounds.orders):
            search_budget.say(partial(self._words, len(self.parts)))
            source, target = self._edges()
            wrong = on_cycles(known, source, target) if self.parts else []
            if not wrong:
                answer = self.theory.tried(known, source, target)
                self.orders += 1
                if isinstance(answer, Decision):
                    return answer
                wrong = list(answer.components)
                if answer.is_all:
                    self.prefix = max(self.prefix, min(int(some[0]) for some in wrong) - 1)
            if search_budget.is_over():
                return self._given_up(Bound.TIME, wrong)
            decision = self._solve(wrong)
            if decision:
                return decision
        return self._given_up(Bound.ORDERS, wrong)

    def _words(self, parts: int, place: int = 0, transactions: int = 0) -> str:
        tried = f"{self.orders} orders tried, an order for the first {self.prefix} transactions"
        if not place:
            return f"{tried}, {parts} components in order by themselves"
        return f"{tried}, component {place} of {parts} with {transactions} transactions, {self.conflicts} conflicts"

    def _edges(self) -> tuple[Int32, Int32]:
        edges, parts = self.found.edges, self.parts.values()
        return (
            np.concatenate((edges.source, *(part.source for part in parts))),
            np.concatenate((edges.target, *(part.target for part in parts))),
        )

    def _solve(self, wrong: Sequence[Int32]) -> Decision | None:
        """Put the versions in order where the order was wrong."""
        undecided = []
        choices = 0
        bound = Bound.TIME
        fresh = self._joined(wrong)
        for place, number in enumerate(fresh, start=1):
            transactions = self.parts[number].transactions
            search_budget.say(partial(self._words, len(fresh), place, len(transactions)))
            if search_budget.is_over() or len(transactions) > self.bounds.transactions:
                bound = Bound.TIME if search_budget.is_over() else Bound.TRANSACTIONS
                undecided.append(transactions)
                continue
            open_ = self.theory.component(self.found, transactions)
            if len(open_) > self.bounds.choices:
                bound, choices = Bound.CHOICES, choices + len(open_)
                undecided.append(transactions)
                continue
            solution = solved(open_)
            self.conflicts += solution.conflicts
            if solution.verdict is Verdict.UNKNOWN:
                bound = Bound.TIME if search_budget.is_over() else Bound.CONFLICTS
                choices += len(open_)
                undecided.append(transactions)
                continue
            if solution.verdict is Verdict.INVALID:
                refutation = solution.refutation
                proof = self.theory.refuted(self.found, open_, refutation) if refutation else None
                return Decision(verdict=Verdict.INVALID, proof=proof)
            source, target = open_.kept(solution.taken).T
            self.parts[number] = _Part(transactions=transactions, source=source, target=target)
        return self._given_up(bound, undecided, choices) if undecided else None

    def _given_up(self, bound: Bound, components: Sequence[Int32], choices: int = 0) -> Decision:
        return Decision(
            verdict=Verdict.UNKNOWN,
            open=tuple(tuple(transactions[:EXAMPLES].tolist()) for transactions in components[:EXAMPLES]),
            established=Established(
                bound=bound,
                components=len(components),
                transactions=len(np.unique(np.concatenate(components))),
                choices=choices,
                conflicts=self.conflicts,
                orders=self.orders,
                prefix=self.prefix,
            ),
        )

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
