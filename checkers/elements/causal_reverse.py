"""The causal-reverse checker: a read that sees a write sees all writes that were over before it began.

Operations, with the table as key and a value {value, values}:
  write {value}         ok: the table has this row
  read {} -> {values}   ok: all rows of the table at one moment

Serializability allows that a transaction is seen without one that was over before it began, strict serializability does
not. What breaks the promise:
  causal-reverse  a read that shows a write, and not an acked one that ended before that began; counted by reads
  unexpected      read before a write of it was invoked, or without one
  aborted-read    read, although all its writes had certainly failed

A value that may have been written more than once is taken to have been written by the first of these writes. It does
not establish that reads are current: one that shows nothing breaks no promise here (the set checker judges that).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
from checkers.causal.uses import OF_READS_WITHOUT_WRITES
from checkers.elements.rows import COLUMNS, FAR, NEVER, ROWS, element_groups, is_ok, keyed_rows, spans
from checkers.kernels.columns import FAIL, NONE, OK, run_starts
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

FUNCTIONS = ("write", "read")
WRITE, READ = range(2)
READS = "reads"


MEANINGS: Mapping[str, Meaning] = {
    "causal-reverse": Meaning(
        says="A read shows a write and not an earlier one that was over before it began.",
        usually="Writes get their timestamps from clocks that disagree, so that a later one is ordered before an "
        "earlier one.",
    ),
    **OF_READS_WITHOUT_WRITES,
}


@dataclass(frozen=True, kw_only=True)
class CausalReverseChecker:
    """Judges a history of tables to which rows are added."""

    name: str = "causal-reverse"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    # Not causal-reverse: the write that was seen may be open, and fail.
    final_on_a_prefix: ClassVar[Finals] = by_their_names("unexpected")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        rows = in_buckets(request, engine, COLUMNS, (partial(keyed_rows, functions=FUNCTIONS), ROWS))
        found = found_in_buckets(request, engine, rows, reversed_reads)
        return judge(found.anomalies, legal=request.legal, undecided=(), statistics=found.counts(READS))


def reversed_reads(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of tables."""
    groups = element_groups(spans(rows, buckets=1))
    named = groups.element != NONE
    writes = (groups.f == WRITE) & named
    possible = writes & (groups.type != FAIL)
    seen = is_ok(groups, READ) & named
    began = groups.smallest(possible, groups.start)
    acked = groups.smallest(writes & (groups.type == OK), groups.end)
    early = groups.smallest(seen, groups.end) < groups.smallest(writes, groups.start)
    aborted = (groups.sizes(seen) > 0) & ~early & (groups.sizes(possible) == 0)

    sights = np.flatnonzero(seen)
    sights = sights[np.lexsort((groups.group[sights], groups.end[sights]))]
    sights = sights[run_starts(groups.end[sights], groups.group[sights])]
    group = groups.group[sights]
    starts = run_starts(groups.end[sights])
    first, read = np.flatnonzero(starts), np.cumsum(starts) - 1
    latest = np.full(len(first), -1, dtype=np.int64)
    np.maximum.at(latest, read, np.where(began[group] == NEVER, -1, began[group]))
    # Whatever had ended before the latest write began must be there, and nothing else may be counted for it.
    table_of = groups.key[groups.first]
    written = np.flatnonzero(acked != NEVER)
    written = written[np.lexsort((acked[written], table_of[written]))]
    by_end = table_of[written] * FAR + acked[written]
    table = groups.key[sights[first]]
    begin = np.searchsorted(by_end, table * FAR)
    end = np.searchsorted(by_end, table * FAR + np.maximum(latest, 0))
    there = np.bincount(read[acked[group] < latest[read]], minlength=len(first))
    wrong = np.flatnonzero(end - begin > there)

    findings = Findings()
    findings.tally(READS, len(first))
    wrong = wrong[np.argsort(groups.start[sights[first[wrong]]])]
    examples = []
    for number in wrong[:EXAMPLES].tolist():
        mine = group[read == number]
        over = written[begin[number] : end[number]]
        missing = int(over[~np.isin(over, mine)][0])
        shown = int(mine[np.argmax(np.where(began[mine] == NEVER, -1, began[mine]))])
        row, key = int(sights[first[number]]), groups.names[table[number]]
        element, later = (int(groups.element[groups.first[g]]) for g in (missing, shown))
        witnesses = {int(acked[missing]), int(began[shown]), int(groups.start[row]), int(groups.end[row])}
        examples.append(
            Example(
                key=key,
                operations=tuple(sorted(witnesses)),
                because=(
                    f"the read completed by {groups.end[row]} shows {later}{f' of {key}' if key else ''}, and not "
                    f"{element}, which had been written (by {acked[missing]}) before {later} was begun ({began[shown]})"
                ),
                details={"shown": later, "missing": element, "missing_in_all": len(over) - int(there[number])},
            )
        )
    findings.add("causal-reverse", len(wrong), sorted(examples, key=lambda example: example.operations))
    groups.report(findings, "unexpected", early, "was read before anybody had tried to write it")
    groups.report(findings, "aborted-read", aborted, "was read, although its write had certainly failed")
    return findings.table()
