"""Transactions on registers: they are isolated as the demanded consistency model says.

Operation `txn`: micro-operations `r` {key} and `w` {key, value}; no value is written twice to a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import reading
from checkers.api.plan import Checker
from checkers.completions import parts
from checkers.transactions.checker import Levels, RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from harness.bounds import Bounds
from harness.generator import Generator
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import OK_SHARE
from workloads.random_transactions import TransactionSettings, final_reads, random_transactions


@dataclass(frozen=True, kw_only=True)
class RwRegisterSettings(TransactionSettings):
    keys: Annotated[int, Bounds(1, 10_000)] = 20
    model: ConsistencyModel = ConsistencyModel.STRICT_SERIALIZABLE
    """The consistency model that is demanded."""
    levels: Levels = Levels.ALL
    """Which models are decided beside it."""
    assume: frozenset[Assumption] = frozenset()
    """What the system is known to promise of each key."""


def generator(settings: RwRegisterSettings, seed: Seed, concurrency: int) -> Generator:
    return random_transactions("w", settings, seed)


def final_generator(settings: RwRegisterSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return final_reads(settings)


def checkers(settings: RwRegisterSettings) -> dict[str, Checker]:
    return {"rw-register": RwRegister(model=settings.model, levels=settings.levels, assume=settings.assume)}


WORKLOAD = Workload(
    name="rw-register",
    about="transactions on registers are isolated as a consistency model says",
    settings_type=RwRegisterSettings,
    value_type=TRANSACTION,
    functions=("txn",),
    any_values=True,
    repeats=(parts("txn", written=("w", "append")),),
    evidence=(reading("txn", "r"),),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"txn": 40},
    required_share={"txn": OK_SHARE},
)
