"""The bank checker: money moves between accounts; none is made, none is lost.

Operations, with a value {from, to, amount, balances: [{account, amount}]}:
  transfer {from, to, amount}
  read {} -> {balances}   ok: all accounts at one moment

Every read shows the same total: that of the option `total`, or else of the first whole ok read.
What breaks the promise:
  wrong-total         a read whose balances have another sum
  negative-balance    an account below zero, unless that is allowed
  null-balance        an account without a balance
  unexpected-account  an account that is none of 0 to `accounts` - 1, where that option is given

It does not establish that any single transfer happened, nor that reads are current.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.anomaly import Meaning
from checkers.findings import FINDINGS, Example, Findings, gathered_findings, judged
from checkers.kernels.columns import NONE, OK, TYPES, Bool, Int64, codes, integers, member
from checkers.kernels.wide import Wide, summed
from checkers.plan import CheckRequest, Engine
from checkers.verdict import EXAMPLES, CheckerResult

COLUMNS = ("index", "type", "f", "value")
TRANSFER_AND_BALANCES = pa.struct(
    [
        pa.field("from", pa.int64()),
        pa.field("to", pa.int64()),
        pa.field("amount", pa.int64()),
        pa.field("balances", pa.list_(pa.struct([pa.field("account", pa.int64()), pa.field("amount", pa.int64())]))),
    ]
)
FIRST = pa.schema([pa.field("one", pa.int8())] + [pa.field(name, pa.int64()) for name in ("index", "high", "low")])
"""The total of the read that `index` completes, in two halves."""
READS = "reads"


class Overdraft(Enum):
    """May an account be below zero?"""

    FORBIDDEN = "forbidden"
    ALLOWED = "allowed"


MEANINGS: Mapping[str, Meaning] = {
    "wrong-total": Meaning(
        says="A read of all accounts shows another total than the money there is.",
        usually="The read was no snapshot, or a transfer was applied by half or on top of an older balance.",
    ),
    "negative-balance": Meaning(
        says="An account went below zero although that is not allowed.",
        usually="The balance was checked before the transfer and not together with it.",
    ),
    "null-balance": Meaning(
        says="A read shows an account without a balance.",
        usually="The account was lost, or the read came before a replica had it.",
    ),
    "unexpected-account": Meaning(
        says="A read shows an account that is none of those there are.",
        usually="Data of another run or of another table was read.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class BankChecker:
    """Judges a bank workload's history."""

    total: int | None = None
    accounts: int | None = None
    overdraft: Overdraft = Overdraft.FORBIDDEN
    name: str = "bank"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        history = engine.history(request.history, COLUMNS)
        total = self.total
        if total is None:
            firsts = engine.mapped(history, first_total, FIRST)
            first = engine.gather(engine.grouped(firsts, ("one",), earliest, FIRST), 1)
            halves = Wide(first["high"].to_numpy(), first["low"].to_numpy())
            total = halves.integers()[0] if first.num_rows else None
        kernel = partial(bank_findings, total=total, accounts=self.accounts, overdraft=self.overdraft)
        findings = engine.mapped(history, kernel, FINDINGS)
        found = dict(gathered_findings(engine, findings))
        reads = found.pop(READS, None)
        return judged(
            found,
            legal=request.legal,
            undecided=(),
            vacuous=[] if reads and total is not None else ["no read shows all balances"],
            statistics={READS: reads.count if reads else 0, "total": total},
        )


@dataclass(frozen=True)
class Balances:
    """The ok reads of a batch, and their balances, one an element."""

    index: Int64
    read: Int64
    account: Int64
    amount: Int64

    @property
    def totals(self) -> Wide:
        known = self.amount != NONE
        return summed(self.amount[known], self.read[known], len(self.index))


def balances(batch: pa.Table) -> Balances:
    is_read = np.flatnonzero((codes(batch["f"], ("read",)) == 0) & (codes(batch["type"], TYPES) == OK))
    lists = member(batch["value"].take(pa.array(is_read)), "balances")
    shown = np.flatnonzero(pc.is_valid(lists).to_numpy(zero_copy_only=False))
    index = batch["index"].to_numpy()[is_read[shown]].astype(np.int64)
    if not len(shown):
        empty = np.empty(0, dtype=np.int64)
        return Balances(index, empty, empty, empty)
    lists = lists.take(pa.array(shown))
    elements = pc.list_flatten(lists)
    parents = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    return Balances(index, parents, integers(member(elements, "account")), integers(member(elements, "amount")))


def first_total(batch: pa.Table) -> pa.Table:
    """Kernel: the total of the first ok read of a batch that shows all balances."""
    reads = balances(batch)
    whole = np.setdiff1d(np.arange(len(reads.index)), reads.read[reads.amount == NONE])
    if not len(whole):
        return FIRST.empty_table()
    first = int(whole[np.argmin(reads.index[whole])])
    high, low = reads.totals.at(np.array([first]))
    return pa.table({"one": [0], "index": [reads.index[first]], "high": high, "low": low}, schema=FIRST)


def earliest(firsts: pa.Table) -> pa.Table:
    """Kernel: the row with the smallest index."""
    return firsts.slice(int(np.argmin(firsts["index"].to_numpy())), 1)


def bank_findings(batch: pa.Table, *, total: int | None, accounts: int | None = None, overdraft: Overdraft) -> pa.Table:
    """Kernel: what is wrong in the reads of a batch."""
    reads = balances(batch)
    findings = Findings()
    findings.add(READS, len(reads.index), ())
    null = np.zeros(len(reads.index), dtype=np.bool_)
    null[reads.read[reads.amount == NONE]] = True
    totals = reads.totals
    shown = [f"shows a total of {sum_}, which must be {total}" for sum_ in totals.integers()]
    if total is not None:
        _add(findings, "wrong-total", reads, ~null & totals.differs(Wide.integer(total)), shown)
    _add(findings, "null-balance", reads, null, ["shows an account without a balance"] * len(shown))
    if accounts is not None:
        unexpected = np.zeros(len(reads.index), dtype=np.bool_)
        unexpected[reads.read[(reads.account < 0) | (reads.account >= accounts)]] = True
        _add(findings, "unexpected-account", reads, unexpected, ["shows an account that there is not"] * len(shown))
    if overdraft is Overdraft.FORBIDDEN:
        below = reads.read[(reads.amount < 0) & (reads.amount != NONE)]
        negative = np.zeros(len(reads.index), dtype=np.bool_)
        negative[below] = True
        _add(findings, "negative-balance", reads, negative, ["shows an account below zero"] * len(shown))
    return findings.table()


def _add(findings: Findings, name: str, reads: Balances, which: Bool, sentences: list[str]) -> None:
    wrong = np.flatnonzero(which)
    chosen = wrong[np.argsort(reads.index[wrong])][:EXAMPLES]
    examples = []
    for number in chosen.tolist():
        mine = reads.read == number
        pairs = zip(reads.account[mine].tolist(), reads.amount[mine].tolist(), strict=True)
        amounts = {str(account): None if amount == NONE else amount for account, amount in pairs}
        operation = int(reads.index[number])
        because = f"the read completed by {operation} {sentences[number]}"
        examples.append(
            Example(
                key=None,
                operations=(operation,),
                because=because,
                details={"balances": amounts},
            )
        )
    findings.add(name, len(wrong), examples)
