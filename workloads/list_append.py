"""Transactions on lists: they are isolated as the demanded consistency model says.

Operation `txn`: micro-operations `r` {key} and `append` {key, value}; every element is appended at most once to a list.
"""

from __future__ import annotations

from dataclasses import dataclass

from checkers.api.evidence import reading
from checkers.api.plan import Checker
from checkers.completions import parts
from checkers.transactions.checker import ListAppend
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from harness.generator import Generator
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import OK_SHARE
from workloads.random_transactions import TransactionSettings, final_reads, random_transactions


@dataclass(frozen=True, kw_only=True)
class ListAppendSettings(TransactionSettings):
    model: ConsistencyModel = ConsistencyModel.STRICT_SERIALIZABLE
    """The consistency model that is demanded."""


def generator(settings: ListAppendSettings, seed: Seed, concurrency: int) -> Generator:
    return random_transactions("append", settings, seed)


def final_generator(settings: ListAppendSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return final_reads(settings)


def checkers(settings: ListAppendSettings) -> dict[str, Checker]:
    return {"list-append": ListAppend(model=settings.model)}


WORKLOAD = Workload(
    name="list-append",
    about="transactions on lists are isolated as a consistency model says",
    settings_type=ListAppendSettings,
    value_type=TRANSACTION,
    functions=("txn",),
    any_values=True,
    lists=("r",),
    repeats=(parts("txn", written=("w", "append")),),
    evidence=(reading("txn", "r"),),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"txn": 40},
    required_share={"txn": OK_SHARE},
)
