"""The parts of a node with a planted bug among them."""

from __future__ import annotations

from functools import cache

from system_under_test.node.mutant import P, find_mutant, mutant_names
from system_under_test.rocketmq import mutants
from system_under_test.rocketmq.broker.parts import BrokerParts

MUTANTS = mutant_names(mutants)


@cache
def planted_in(kind: type[P]) -> tuple[str, ...]:
    """The planted bugs that change a node of this kind."""
    every = ((name, find_mutant(mutants, name).parts) for name in MUTANTS)
    return tuple(name for name, planted in every if any(isinstance(parts, kind) for parts in planted))


def planted_parts(kind: type[P], name: str) -> P:
    assert name in planted_in(kind)
    return find_mutant(mutants, name).parts_of(kind)


def parts_of(name: str | None) -> BrokerParts:
    """The healthy ones for None."""
    return BrokerParts() if name is None else planted_parts(BrokerParts, name)
