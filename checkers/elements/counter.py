"""The counter checker: a read lies between what must have been added and what may have been.

Operations, with the counter as key and a value {value}:
  add {value}           ok: the counter has grown by it; negative values are decrements
  read {} -> {value}    ok: what the counter held
  final-read            the same, once nothing is added any more and all replicas have met

A read must not lie below the initial value plus all increments that had completed before it began plus all decrements
that may have happened before it ended, nor above the same with increments and decrements exchanged. Indefinite adds
may have happened at any time after they began, or never; failed ones never. The bounds may be beyond 64 bits.

Of a counter that converges only final reads are judged (`reads=final`).

What breaks the promise: out-of-bounds.

It does not establish that successive reads agree with each other: that is a question of linearizability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
from checkers.elements.rows import COLUMNS, FAR, ROWS, keyed_rows, numbered_keys, spans
from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int64
from checkers.kernels.wide import Wide, cumulated
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

FUNCTIONS = ("add", "read", "final-read")
ADD, READ, FINAL_READ = range(3)
READS = "reads"


MEANINGS: Mapping[str, Meaning] = {
    "out-of-bounds": Meaning(
        says="A counter was read below what must have been added by then, or above what may have been.",
        usually="Below: a stale read or a lost add. Above: an add that was applied twice, often by a retry.",
    ),
}


class CounterReads(Enum):
    """Which reads are judged."""

    ALL = "all"
    FINAL = "final"


@dataclass(frozen=True, kw_only=True)
class CounterChecker:
    """Judges a counter workload's history."""

    initial: int = 0
    reads: CounterReads = CounterReads.ALL
    name: str = "counter"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("out-of-bounds")

    @property
    def _read_kinds(self) -> tuple[int, ...]:
        return (FINAL_READ,) if self.reads is CounterReads.FINAL else (READ, FINAL_READ)

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        rows = in_buckets(request, engine, COLUMNS, (partial(keyed_rows, functions=FUNCTIONS), ROWS))
        kernel = partial(counter_findings, initial=self.initial, read_kinds=self._read_kinds)
        found = found_in_buckets(request, engine, rows, kernel)
        is_undecided = self.reads is CounterReads.FINAL and not found.tally(READS).count
        return judge(
            found.anomalies,
            legal=request.legal,
            undecided=("no final read shows a value",) if is_undecided else (),
            statistics=found.counts(READS),
        )


def counter_findings(rows: pa.Table, *, initial: int, read_kinds: Sequence[int] = (READ, FINAL_READ)) -> pa.Table:
    """Kernel over all rows of a bucket of counters."""
    table = spans(rows, buckets=1)
    names, counter = numbered_keys(table["key"])
    f, kind, value, start, end = (table[name].to_numpy() for name in ("f", "type", "element", "start", "end"))
    adds = (f == ADD) & (kind != FAIL) & (value != NONE)
    done = adds & (kind == OK)
    reads = np.flatnonzero(np.isin(f, read_kinds) & (kind == OK) & (value != NONE))
    up, down = value > 0, value < 0
    begin, finish, read = start[reads], end[reads], value[reads]

    def summed(which: Bool, place: Int64, before: Int64) -> Wide:
        """For each read the sum of those values of its counter whose place is less."""
        at = counter[which] * FAR + place[which]
        order = np.argsort(at)
        sums = cumulated(value[which][order])
        first, last = (np.searchsorted(at[order], counter[reads] * FAR + bound) for bound in (0, before))
        return sums.at(last) - sums.at(first)

    first = Wide.integer(initial)
    lower = first + summed(done & up, end, begin) + summed(adds & down, start, finish)
    upper = first + summed(adds & up, start, finish) + summed(done & down, end, begin)
    shown = Wide.of(read)
    found = np.flatnonzero((shown < lower) | (upper < shown))
    wrong = found[np.argsort(begin[found])][:EXAMPLES]
    least, most = lower.at(wrong).integers(), upper.at(wrong).integers()
    examples = [
        Example(
            key=key,
            operations=(int(begin[i]), int(finish[i])),
            because=(
                f"{key or 'the counter'} was read as {read[i]} (operation {begin[i]}, completed by {finish[i]}), "
                f"but it was at least {low} and at most {high} meanwhile"
            ),
            details={"read": int(read[i]), "lower": low, "upper": high},
        )
        for i, low, high in zip(wrong.tolist(), least, most, strict=True)
        for key in [names[counter[reads[i]]]]
    ]
    findings = Findings()
    findings.tally(READS, len(reads))
    findings.add("out-of-bounds", len(found), examples)
    return findings.table()
