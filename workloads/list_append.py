"""Transactions on lists: they are isolated as the demanded consistency model says.

Operation `txn`: micro-operations `r` {key} and `append` {key, value}; every element is appended at most once to a list.
"""

from __future__ import annotations

from dataclasses import dataclass

from checkers.transactions.checker import ListAppend
from checkers.transactions.model.lattice import ConsistencyModel
from workloads.random_transactions import TransactionSettings, workload_of


@dataclass(frozen=True, kw_only=True)
class ListAppendSettings(TransactionSettings):
    model: ConsistencyModel = ConsistencyModel.STRICT_SERIALIZABLE
    """The consistency model that is demanded."""


def checker(settings: ListAppendSettings) -> ListAppend:
    return ListAppend(model=settings.model)


WORKLOAD = workload_of("list-append", ListAppendSettings, checker, of="lists", write="append", lists=("r",))
