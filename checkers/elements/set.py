"""The set checker: what was added is there, in all later reads.

Operations, with the set as key and a value {value, values}:
  add {value}          ok: the set has it
  read {} -> {values}  ok: all that the set has

Nothing is ever removed. An element is known from the end of its ok add, or of the first read that has it; what a
read that began later says of it is judged. What breaks the promise:
  lost         known, and missing from the last read that could show it, having been there before or never
  stale        known, missing from a read that began later, and there again in a still later one
               (where the reads are promised to be current)
  duplicated   more than once in one read
  unexpected   read before an add of it was invoked, or without one
  aborted-read read, although all its adds had certainly failed

An element that was acked, and that no read which began later looked for, is never-read: UNKNOWN. A lost one is excused
if the time from its add to the moment from which it was known meets an excuse's span.

The statistics say how many were `stable`, `lost`, `never-read`, `stale` and `recovered` (indefinite adds that were
read), and quantiles of latency in ms: from when a stable element was known to the begin of the last read that did not
show it yet (0 where all showed it), and from when a lost one was known to the begin of the last read that still showed
it (0 where none did). A stale element is reported with its latency.

It does not establish that reads agree with each other in between, nor anything about sets with removals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.tallies import bins_of
from checkers.api.verdict import CheckerResult
from checkers.buckets import in_buckets
from checkers.elements.rows import (
    COLUMNS,
    NEVER,
    ROWS,
    SPANS,
    ElementGroups,
    element_groups,
    is_ok,
    process_rows,
    spans_with_heads,
)
from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int64, run_starts
from checkers.prefix import Finals, by_their_names
from harness.compiled import compiled
from harness.record.meaning import Meaning

FUNCTIONS = ("add", "read")
ADD, READ = range(2)


class Reads(Enum):
    """What a read is promised to show."""

    EVENTUAL = "eventual"
    CURRENT = "current"


NEVER_READ = "never-read"
COUNTED = ("attempted", "acked", "stable", "lost", NEVER_READ, "stale", "recovered")
"""Tallies that the statistics have by the same names."""

LATENCY = ("stable latency", "lost latency")
"""Tallies of elements by their latency, in ns."""

QUANTILES = {"0": 0.0, "0.5": 0.5, "0.95": 0.95, "0.99": 0.99, "1": 1.0}
"""Those that Jepsen's set-full reports."""


MEANINGS: Mapping[str, Meaning] = {
    "lost": Meaning(
        says="An element that was acknowledged or read is missing from the last read that could show it.",
        usually="The write was acknowledged before it was durable or replicated, and a failover took it.",
    ),
    "stale": Meaning(
        says="A read that began after an element was known did not show it; a later read did.",
        usually="The read was answered by a replica or a deposed leader that lags behind.",
    ),
    "duplicated": Meaning(
        says="One read shows an element more than once.",
        usually="A request was applied twice, often by a retry.",
    ),
    "unexpected": Meaning(
        says="An element was read that nobody had tried to add by then.",
        usually="Corrupt or misdirected data, values of an earlier run left behind, or a client that records what "
        "it did not send.",
    ),
    "aborted-read": Meaning(
        says="An element was read although all its adds had certainly failed.",
        usually="The write was reported as refused after it had been applied, or was not rolled back on every replica.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class SetChecker:
    """Judges a set workload's history."""

    reads: Reads = Reads.EVENTUAL
    name: str = "set"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS

    @property
    def final_on_a_prefix(self) -> Finals:
        """An element that a read has missed may be in a later one; where reads are current, that one was stale."""
        missed = {"lost": frozenset({"stale"}), "stale": frozenset({"lost"})} if self.reads is Reads.CURRENT else {}
        return {**by_their_names("duplicated", "unexpected"), **missed}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        rows = partial(process_rows, functions=FUNCTIONS), ROWS
        operations = in_buckets(request, engine, COLUMNS, rows, (partial(spans_with_heads, head=READ), SPANS))
        excuses = Excuses.by_operation(request.excuses, engine, request.history)
        kernel = partial(set_findings, reads=self.reads, excuses=excuses)
        found = found_in_buckets(request, engine, operations, kernel)
        statistics: dict[str, Any] = found.counts(*COUNTED)
        for name in LATENCY:
            latency_ns = found.tally(name)
            if latency_ns.bins:
                statistics[f"{name} ms"] = {at: ns / 1e6 for at, ns in latency_ns.quantiles(QUANTILES).items()}
        unread = statistics[NEVER_READ]
        undecided = [f"{unread} acked elements were never read: no read began after their ack"] if unread else []
        return judge(found.anomalies, legal=request.legal, undecided=undecided, statistics=statistics)


@compiled
def last_absent(group: Int64, rank: Int64, reads: Int64) -> Int64:
    """For each group the highest rank below reads[group] that none of its rows has; -1 if it has them all.

    Rows are sorted by group and rank; a rank may come twice.
    """
    absent = reads - 1
    for row in range(len(group) - 1, -1, -1):
        if rank[row] == absent[group[row]]:
            absent[group[row]] -= 1
    return absent


@dataclass(frozen=True, kw_only=True)
class _Sights:
    """By element what reads show of it; ranks count the ok reads of its set by their starts, -1 stands for none."""

    groups: ElementGroups
    heads: Int64
    """Rows of the reads, by key and start."""
    base: Int64
    """The position in `heads`, for each element, of the first read of its set."""
    absent: Int64
    """The rank of the last read that does not show it."""
    present: Int64
    """The rank of the last read that shows it."""
    twice: Bool
    """Whether one read shows it more than once."""

    def at(self, values: Int64, rank: Int64) -> Int64:
        """Values by row, of the reads of these ranks; -1 where there is none."""
        return at_rank(values[self.heads], self.base, rank)


def _sights(groups: ElementGroups, seen: Bool, heads: Int64) -> _Sights:
    """`seen`: rows of ok reads that show an element; `heads`: rows of all ok reads."""
    base = np.searchsorted(groups.key[heads], np.arange(len(groups.names) + 1))
    group_key = groups.key[groups.first]
    by_end = np.argsort(groups.end[heads])
    row = np.flatnonzero(seen)
    read = by_end[np.searchsorted(groups.end[heads][by_end], groups.end[row])]
    # Rows are sorted by group and start, and so are the ranks.
    rank, group = read - base[groups.key[row]], groups.group[row]
    present = np.full(groups.count, -1, dtype=np.int64)
    present[group] = rank
    twice = np.zeros(groups.count, dtype=np.bool_)
    twice[group[~run_starts(group, rank)]] = True
    return _Sights(
        groups=groups,
        heads=heads,
        base=base[group_key],
        absent=last_absent(group, rank, np.diff(base)[group_key]),
        present=present,
        twice=twice,
    )


def set_findings(table: pa.Table, *, reads: Reads, excuses: Excuses) -> pa.Table:
    """Kernel over all operations on a bucket of elements, and all reads."""
    groups = element_groups(table)
    named = groups.element != NONE
    adds = (groups.f == ADD) & named
    acked = adds & (groups.type == OK)
    seen = is_ok(groups, READ) & named
    sights = _sights(groups, seen, np.flatnonzero(is_ok(groups, READ) & ~named))

    tried, attempts = groups.sizes(adds), groups.sizes(adds & (groups.type != FAIL))
    shown = sights.present >= 0
    known, known_ns = (groups.smallest(acked | seen, ends) for ends in (groups.end, groups.end_ns))
    early = groups.smallest(seen, groups.end) < groups.smallest(adds, groups.start)
    unexpected = shown & ((tried == 0) | early)
    missed = (known != NEVER) & (sights.at(groups.start, sights.absent) > known)
    lost = missed & (sights.absent > sights.present)
    stale, stable = missed & ~lost, shown & ~lost

    findings = Findings()
    missed_by = sights.at(groups.end, sights.absent)
    waited = np.maximum(0, np.where(stale, sights.at(groups.start_ns, sights.absent) - known_ns, 0))
    sentence = "was known to be in the set, but the last read does not show it"
    gone = np.flatnonzero(lost)
    added = np.minimum(groups.smallest(adds, groups.start), known)
    for excuse, some in excuses.split("lost", added[gone], known[gone]):
        which = np.zeros(groups.count, dtype=np.bool_)
        which[gone[some]] = True
        groups.report(findings, "lost", which, sentence, missed_by=missed_by, excuse=excuse)
    groups.report(findings, "duplicated", sights.twice, "is in one read more than once")
    groups.report(findings, "unexpected", unexpected, "was read before anybody had tried to add it")
    aborted = shown & ~unexpected & (attempts == 0)
    groups.report(findings, "aborted-read", aborted, "was read, although its add had certainly failed")
    if reads is Reads.CURRENT:
        sentence = "was known to be in the set, but a read that began later missed it"
        groups.report(findings, "stale", stale, sentence, took_ns=waited, missed_by=missed_by)
    counts = {
        "attempted": int(tried.sum()),
        "acked": int(groups.sizes(acked).sum()),
        "stable": int(stable.sum()),
        "lost": int(lost.sum()),
        "stale": int(stale.sum()),
        "recovered": int((shown & (groups.sizes(acked) == 0) & (attempts > 0)).sum()),
        NEVER_READ: int(((known != NEVER) & ~shown & ~lost).sum()),
    }
    for name, count in counts.items():
        findings.tally(name, count)
    lasted = np.where(shown, sights.at(groups.start_ns, sights.present) - known_ns, 0)
    for name, latency_ns in zip(LATENCY, (waited[stable], lasted[lost]), strict=True):
        findings.tally_by_bin(name, bins_of(latency_ns))
    return findings.table()


def at_rank(values: Int64, base: Int64, rank: Int64) -> Int64:
    """values[base + rank] where there is such a rank, -1 elsewhere."""
    result = np.full(len(rank), -1, dtype=np.int64)
    result[rank >= 0] = values[(base + rank)[rank >= 0]]
    return result
