"""A bank: money moves between accounts, and none is made or lost.

Operations:
- `transfer` {from, to, amount}: fail with `precondition-failed` if the account has not that much.
- `read` {balances: [{account, amount: null}]}: ok with the balances of these accounts at one moment.

In a run every account begins with OPENING_BALANCE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import shows_members
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.bank import TRANSFER_AND_BALANCES, BankChecker, Overdraft
from harness.bounds import INT64, Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload, refused_in_run
from workloads.final_reads import OK_SHARE, each_until_ok

OPENING_BALANCE = 10
ACCOUNTS = 8
"""How many accounts a run has where no other number is set."""
MOST_MOVED = 5
FEWEST_ACCOUNTS = 2
"""How many accounts a run has at least: a transfer needs two."""
MOST_ACCOUNTS = 1_000


@dataclass(frozen=True, kw_only=True)
class BankSettings:
    total: Annotated[int | None, INT64] = None
    """What all accounts hold together; otherwise what the first read shows. In a run: the opening balance of each."""
    accounts: Annotated[int | None, INT64] = None
    """There are so many, from 0 on; in a history that was not run here any may be shown unless this is set.
    In a run from FEWEST_ACCOUNTS to MOST_ACCOUNTS."""
    overdraft: Overdraft = Overdraft.FORBIDDEN
    read_share: Annotated[float, Bounds(0, 0.9)] = 0.5

    @property
    def account_count(self) -> int:
        """In a run: a read shows all of them."""
        return ACCOUNTS if self.accounts is None else self.accounts


def require_runnable(settings: BankSettings) -> None:
    count = settings.account_count
    if not FEWEST_ACCOUNTS <= count <= MOST_ACCOUNTS:
        expected = f"from {FEWEST_ACCOUNTS} to {MOST_ACCOUNTS}, as many as a read can show"
        raise refused_in_run("bank", "accounts", count, expected=expected)
    opening = count * OPENING_BALANCE
    if settings.total not in (None, opening):
        expected = f"{opening}, which {count} accounts of {OPENING_BALANCE} hold together"
        raise refused_in_run("bank", "total", settings.total, expected=expected)


def _read(accounts: int) -> Operation:
    balances = [{"account": account, "amount": None} for account in range(accounts)]
    return invoke("read", {"from": None, "to": None, "amount": None, "balances": balances})


def generator(settings: BankSettings, seed: Seed, concurrency: int) -> Generator:
    count = settings.account_count

    def operation(draw: Draw, number: int) -> Operation:
        if draw.uniform() < settings.read_share:
            return _read(count)
        payer = draw.below(count)
        payee = (payer + 1 + draw.below(count - 1)) % count
        amount = 1 + draw.below(MOST_MOVED)
        return invoke("transfer", {"from": payer, "to": payee, "amount": amount, "balances": None})

    return drawn(seed, operation)


def final_generator(settings: BankSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return each_until_ok([_read(settings.account_count)])


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
    require_runnable=require_runnable,
    generator=generator,
    final_generator=final_generator,
    required_ok={"transfer": 20, "read": 20},
    required_share={"transfer": OK_SHARE, "read": OK_SHARE},
)
