"""A bank: money moves between accounts, and none is made or lost.

Operations:
- `transfer` {from, to, amount}.
- `read` {}: ok with the balances of all accounts at one moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.bank import TRANSFER_AND_BALANCES, BankChecker, Overdraft
from checkers.evidence import shows_members
from checkers.plan import Checker
from checkers.repeats import members
from harness.bounds import INT64
from harness.workload import Workload


@dataclass(frozen=True, kw_only=True)
class BankSettings:
    total: Annotated[int | None, INT64] = None
    """What all accounts hold together; otherwise what the first read shows."""
    accounts: Annotated[int | None, INT64] = None
    """There are these, from 0 on; otherwise any may be shown."""
    overdraft: Overdraft = Overdraft.FORBIDDEN


def checkers(settings: BankSettings) -> dict[str, Checker]:
    return {
        "bank": BankChecker(total=settings.total, accounts=settings.accounts, overdraft=settings.overdraft),
    }


WORKLOAD = Workload(
    name="bank",
    about="money moves between accounts, and none is made or lost",
    settings_type=BankSettings,
    value_type=TRANSFER_AND_BALANCES,
    functions=("transfer", "read"),
    repeats=(members("transfer", of=("from", "to", "amount")),),
    evidence=(shows_members("read", "balances", "that shows balances"),),
    checkers=checkers,
    anomalies=("negative-balance", "null-balance", "unexpected-account", "wrong-total"),
)
