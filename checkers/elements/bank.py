"""The bank checker: money moves between accounts; none is made, none is lost.

Operations, with the table as key and a value {from, to, amount, balances: [{account, amount}]}:
  transfer {from, to, amount}
  read {} -> {balances}   ok: all accounts of the table at one moment

Every read of a table shows the same total: that of the option `total`, or else of the table's first whole ok read.
Totals are exact, also where they need more than 64 bits.
What breaks the promise:
  wrong-total         a read whose balances have another sum
  negative-balance    an account below zero, unless that is allowed
  null-balance        an account without a balance
  unexpected-account  an account that is none of 0 to `accounts` - 1, where that option is given

It does not establish that any single transfer happened, nor that reads are current.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import FINDINGS, Example, Findings, gathered_findings, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
from checkers.kernels.columns import NONE, OK, TYPES, Bool, Int64, codes, integers, member, run_starts, whole
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.kernels.wide import Wide, summed
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

COLUMNS = ("index", "type", "f", "key", "value")
TRANSFER_AND_BALANCES = pa.struct(
    [
        pa.field("from", pa.int64()),
        pa.field("to", pa.int64()),
        pa.field("amount", pa.int64()),
        pa.field("balances", pa.list_(pa.struct([pa.field("account", pa.int64()), pa.field("amount", pa.int64())]))),
    ]
)
FIRST = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("key", pa.string())]
    + [pa.field(name, pa.int64()) for name in ("index", "high", "low")]
)
"""A whole read of a table, and the halves of its total."""
TABLES_LIMIT = 1_000_000
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
    final_on_a_prefix: ClassVar[Finals] = by_their_names(
        "wrong-total", "negative-balance", "null-balance", "unexpected-account"
    )

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        totals = Expected(default=self.total)
        if self.total is None:
            firsts = in_buckets(request, engine, COLUMNS, (first_totals, FIRST))
            gathered = engine.gather(engine.grouped(firsts, ("bucket",), earliest, FIRST), TABLES_LIMIT)
            totals = Expected.shown_by(gathered)
        kernel = partial(bank_findings, totals=totals, accounts=self.accounts, overdraft=self.overdraft)
        found = gathered_findings(engine, engine.mapped(engine.history(request.history, COLUMNS), kernel, FINDINGS))
        reads = found.tally(READS).count
        return judge(
            found.anomalies,
            legal=request.legal,
            undecided=(),
            vacuous=[] if reads and totals.are_known else ["no read shows all balances"],
            statistics={READS: reads, "total": totals.only},
        )


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Which total the reads of a table show."""

    default: int | None = None
    """The total of all tables, if it was given."""
    by_table: Mapping[str | None, int] = field(default_factory=dict)
    """What the first whole read of each table shows, where none was given."""

    @classmethod
    def shown_by(cls, firsts: pa.Table) -> Expected:
        totals = Wide(firsts["high"].to_numpy(), firsts["low"].to_numpy()).integers()
        return cls(by_table=dict(zip(firsts["key"].to_pylist(), totals, strict=True)))

    @property
    def are_known(self) -> bool:
        return self.default is not None or bool(self.by_table)

    @property
    def only(self) -> int | None:
        """The total, if all tables have one."""
        found = {self.default} if self.default is not None else set(self.by_table.values())
        return found.pop() if len(found) == 1 else None

    def of(self, table: str | None) -> int | None:
        return self.by_table.get(table) if self.default is None else self.default


@dataclass(frozen=True)
class Balances:
    """The ok reads of a batch, and their balances, one an element."""

    index: Int64
    key: pa.Array
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
    read = is_read[shown]
    index = batch["index"].to_numpy()[read].astype(np.int64)
    key = whole(batch["key"].take(pa.array(read))).cast(pa.string())
    if not len(shown):
        empty = np.empty(0, dtype=np.int64)
        return Balances(index, key, empty, empty, empty)
    lists = lists.take(pa.array(shown))
    elements = pc.list_flatten(lists)
    parents = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    return Balances(index, key, parents, integers(member(elements, "account")), integers(member(elements, "amount")))


def first_totals(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: of each table the first ok read of a batch that shows all balances."""
    reads = balances(batch)
    complete = np.setdiff1d(np.arange(len(reads.index)), reads.read[reads.amount == NONE])
    totals = reads.totals
    key = reads.key.take(pa.array(complete))
    rows = [
        pa.array(bucket_of(mixed_column(key), buckets)),
        key,
        *(pa.array(column[complete]) for column in (reads.index, *totals)),
    ]
    return earliest(pa.Table.from_arrays(rows, schema=FIRST))


def earliest(firsts: pa.Table) -> pa.Table:
    """Kernel: of each table the row with the smallest index."""
    number = whole(firsts["key"]).dictionary_encode("encode").indices.to_numpy()
    order = np.lexsort((firsts["index"].to_numpy(), number))
    return firsts.take(pa.array(order[run_starts(number[order].astype(np.int64))]))


def bank_findings(batch: pa.Table, *, totals: Expected, accounts: int | None = None, overdraft: Overdraft) -> pa.Table:
    """Kernel: what is wrong in the reads of a batch."""
    reads = balances(batch)
    findings = Findings()
    findings.tally(READS, len(reads.index))
    null = np.zeros(len(reads.index), dtype=np.bool_)
    null[reads.read[reads.amount == NONE]] = True
    _add_totals(findings, reads, ~null, totals)
    _add(findings, "null-balance", reads, null, lambda number: "shows an account without a balance")
    if accounts is not None:
        unexpected = np.zeros(len(reads.index), dtype=np.bool_)
        unexpected[reads.read[(reads.account < 0) | (reads.account >= accounts)]] = True
        _add(findings, "unexpected-account", reads, unexpected, lambda number: "shows an account that there is not")
    if overdraft is Overdraft.FORBIDDEN:
        below = reads.read[(reads.amount < 0) & (reads.amount != NONE)]
        negative = np.zeros(len(reads.index), dtype=np.bool_)
        negative[below] = True
        _add(findings, "negative-balance", reads, negative, lambda number: "shows an account below zero")
    return findings.table()


def _add_totals(findings: Findings, reads: Balances, is_whole: Bool, expected: Expected) -> None:
    tables = reads.key.dictionary_encode("encode")
    of_table = [expected.of(key) for key in tables.dictionary.to_pylist()]
    table = tables.indices.to_numpy()
    is_known = np.array([total is not None for total in of_table], dtype=np.bool_)[table]
    known = [Wide.integer(total or 0) for total in of_table] or [Wide.integer(0)]
    must = Wide(*(np.concatenate(halves) for halves in zip(*known, strict=True))).at(table)
    totals = reads.totals

    def sentence(number: int) -> str:
        (shown,) = totals.at(np.array([number])).integers()
        return f"shows a total of {shown}, which must be {of_table[table[number]]}"

    _add(findings, "wrong-total", reads, is_whole & is_known & totals.differs(must), sentence)


def _add(findings: Findings, name: str, reads: Balances, which: Bool, sentence: Callable[[int], str]) -> None:
    wrong = np.flatnonzero(which)
    chosen = wrong[np.argsort(reads.index[wrong])][:EXAMPLES]
    examples = []
    for number in chosen.tolist():
        mine = reads.read == number
        pairs = zip(reads.account[mine].tolist(), reads.amount[mine].tolist(), strict=True)
        amounts = {str(account): None if amount == NONE else amount for account, amount in pairs}
        operation = int(reads.index[number])
        because = f"the read completed by {operation} {sentence(number)}"
        examples.append(
            Example(
                key=None,
                operations=(operation,),
                because=because,
                details={"balances": amounts},
            )
        )
    findings.add(name, len(wrong), examples)
