"""A refutation in steps: what is known first, then each case with what only follows there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from checkers.transactions.evidence.proof import Proof, ProofStep
from checkers.transactions.orders.proof_builder import Argument
from tests.references.orders_by_components.subproblem import Refutation


@dataclass(frozen=True, kw_only=True)
class Case:
    """A place in the tree of cases."""

    refutation: Refutation
    under: int = -1
    """The case in which this one is, by its place in a list; or -1."""
    depth: int = 0
    label: int = -1
    """2 * choice + alternative."""


class Citing(Protocol):
    """What a model makes of a component's edges."""

    @property
    def argument(self) -> Argument: ...

    def cite(self, case: Case) -> None:
        """Adds the steps that the case rests on and that hold in all cases."""

    def assumed(self, label: int) -> ProofStep:
        """That an alternative was taken."""

    def cycle(self, cases: list[Case], case: Case, own: list[ProofStep], first: int) -> tuple[int, ...]:
        """Numbers of steps; those which only follow in this case are added to `own`, which is numbered from `first`."""


def proof_by_cases(refutation: Refutation, citing: Citing) -> Proof:
    cases = [Case(refutation=refutation)]
    for at, case in enumerate(cases):  # grows meanwhile
        for alternative, under in enumerate(case.refutation.alternatives or ()):
            label = 2 * case.refutation.choice + alternative
            cases.append(Case(refutation=under, under=at, depth=case.depth + 1, label=label))
    for case in cases:
        citing.cite(case)
    steps = tuple(citing.argument.steps)
    branches: dict[int, list[Proof]] = {}
    for at in range(len(cases) - 1, -1, -1):
        case = cases[at]
        own = [] if case.label < 0 else [citing.assumed(case.label)]
        cycle: tuple[int, ...] = ()
        two: tuple[Proof, Proof] | None = None
        if case.refutation.alternatives:
            first, second = branches.pop(at)
            two = first, second
        else:
            cycle = citing.cycle(cases, case, own, len(steps) + max(case.depth - 1, 0))
        if case.under < 0:
            return Proof(steps=(*steps, *own), cycle=cycle, cases=two)
        branches.setdefault(case.under, []).insert(0, Proof(steps=tuple(own), cycle=cycle, cases=two))
    raise AssertionError("a refutation without a first case")


def around(cycle: tuple[int, ...]) -> list[tuple[int, int]]:
    """Its edges."""
    return list(zip(cycle, (*cycle[1:], *cycle[:1]), strict=True))
