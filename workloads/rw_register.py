"""Transactions on registers: they are isolated as the demanded consistency model says.

Operation `txn`: micro-operations `r` {key} and `w` {key, value}; no value is written twice to a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.transactions.checker import Levels, RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.model.lattice import ConsistencyModel
from harness.bounds import Bounds
from workloads.random_transactions import TransactionSettings, workload_of


@dataclass(frozen=True, kw_only=True)
class RwRegisterSettings(TransactionSettings):
    keys: Annotated[int, Bounds(1, 10_000)] = 20
    model: ConsistencyModel = ConsistencyModel.STRICT_SERIALIZABLE
    """The consistency model that is demanded."""
    levels: Levels = Levels.ALL
    """Which models are decided beside it."""
    assume: frozenset[Assumption] = frozenset()
    """What the system is known to promise of each key."""


def checker(settings: RwRegisterSettings) -> RwRegister:
    return RwRegister(model=settings.model, levels=settings.levels, assume=settings.assume)


WORKLOAD = workload_of("rw-register", RwRegisterSettings, checker, of="registers", write="w")
