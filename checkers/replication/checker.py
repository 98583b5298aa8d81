"""The replication checker: what nodes report of themselves keeps the rules of replication.

It judges, by the nodes' own event logs (`harness.record.node_events`): an epoch has one master, epochs only grow,
masters come from the SyncStateSet, and what was confirmed of a log stays what it is, on every replica and through every
change of masters. Clients may have noticed nothing yet. A node may hold many logs, each of bytes or of entries, and who
leads the group of a log may be called its leader, and an epoch a term.

What breaks it, by name:
  two-masters        two nodes took the part of master under one epoch, or two masters were elected under one
  two-leaders        two of those who elect led in one term
  epoch-back         a node acted under an epoch, or in a term, lower than one it had acted under, restarts included
  unclean-election   a master was elected that was not in the SyncStateSet, and unclean elections are not allowed
  fenced-write       an epoch's confirmed offset passed the start of a later epoch after that one's master had begun: a
                     deposed master went on to accept writes
  confirmed-lost     the same, but it had been confirmed before: the new master's log lacked confirmed bytes
  diverging-logs     two replicas hold, at the end, different bytes below the confirm offset of both
  rewritten-log      confirmed bytes were replaced by others, which were confirmed as well

It takes the table that `write_node_events` makes (`RunUnderCheck.node_events`); without one nothing is judged, and the
result is VALID with no statistics. Bytes are compared by checksums of pieces of 4 KiB, so what stands in the last piece
that is not full is not compared; a difference of two pieces goes unseen once in 2³² times. Bytes on a disk that was
damaged for good are not compared. Times of different nodes are compared to tell fenced-write from confirmed-lost, and
for nothing else.

It does not establish that nodes report the truth, that writes survive where nothing was confirmed, or progress.

Mutants it kills: no-epoch-bump (two-masters), ignore-demotion (fenced-write), silent-unclean (unclean-election),
truncate-by-epoch-only (diverging-logs), vote-not-durable (two-leaders, epoch-back), flush-lie, ack-before-append,
shrink-first and dispatch-to-max (confirmed-lost, rewritten-log).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, gathered_findings, judge
from checkers.api.plan import CheckRequest, Dataset, Engine
from checkers.api.verdict import CheckerResult, Verdict
from checkers.buckets import bucket_count
from checkers.history_batches import history_rows
from checkers.replication.contradictions import contradictions
from checkers.replication.reports import REPORTS, reports_of
from harness.record.meaning import Meaning
from harness.record.node_events import NODE_EVENTS

KINDS_LIMIT = 10_000
COUNTS = pa.schema([pa.field("event", pa.string()), pa.field("count", pa.int64())])


MEANINGS: Mapping[str, Meaning] = {
    "two-masters": Meaning(
        says="Two nodes were master under one epoch.",
        usually="An epoch is given out twice: it is not durable before it is used, or a deposed leader still decides.",
    ),
    "two-leaders": Meaning(
        says="Two of the nodes that elect led in one term.",
        usually="A vote was forgotten: it was not durable before it was answered.",
    ),
    "epoch-back": Meaning(
        says="A node acted under an epoch lower than one that it had acted under before.",
        usually="The epoch was not durable when it was first used.",
    ),
    "unclean-election": Meaning(
        says="A master was elected that was not in sync, though that is not allowed.",
        usually="The election takes any living replica where no member of the in-sync set lives.",
    ),
    "fenced-write": Meaning(
        says="A deposed master went on to confirm writes that its successor's log does not hold.",
        usually="The old master confirms alone, or does not notice that it was replaced.",
    ),
    "confirmed-lost": Meaning(
        says="A new master's log lacked bytes that had been confirmed.",
        usually="Bytes were confirmed before every replica that may be elected held them durably.",
    ),
    "diverging-logs": Meaning(
        says="Two replicas end with different bytes below the confirm offset of both.",
        usually="A replica rejoined without cutting off what its new master does not have.",
    ),
    "rewritten-log": Meaning(
        says="Confirmed bytes were replaced by other confirmed bytes.",
        usually="A lagging replica became master and took writes where others had been confirmed.",
    ),
}


class ReplicationChecker:
    """Judges the events of a system's nodes."""

    name = "cluster"
    meanings = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        path = request.run.node_events if request.run else None
        if path is None:
            return CheckerResult(verdict=Verdict.VALID)
        events = engine.history(path, tuple(NODE_EVENTS.names))
        buckets = bucket_count(history_rows(path))
        excuses = Excuses.by_time(request.excuses)
        reports = engine.grouped(events, ("node",), partial(reports_of, buckets=buckets, excuses=excuses), REPORTS)
        damaged = request.run.damaged if request.run else frozenset[str]()
        findings = engine.grouped(
            reports, ("bucket",), partial(contradictions, excuses=excuses, damaged=damaged), FINDINGS
        )
        return judge(
            gathered_findings(engine, findings, request.excuses).anomalies,
            legal=request.legal,
            undecided=(),
            statistics={"events": _counts(events, engine)},
        )


def _counts(events: Dataset, engine: Engine) -> dict[str, int]:
    counted = engine.mapped(events, counts, COUNTS)
    rows = engine.gather(engine.grouped(counted, ("event",), total, COUNTS), KINDS_LIMIT).to_pylist()
    return {row["event"]: row["count"] for row in sorted(rows, key=lambda row: row["event"])}


def counts(batch: pa.Table) -> pa.Table:
    """Kernel: events of one batch by their name."""
    found = batch["event"].combine_chunks().cast(pa.string()).value_counts()
    return pa.table({"event": found.field("values"), "count": found.field("counts")}, schema=COUNTS)


def total(table: pa.Table) -> pa.Table:
    """Kernel over the counts of one kind of event."""
    return pa.table({"event": table["event"].slice(0, 1), "count": [pc.sum(table["count"]).as_py()]}, schema=COUNTS)
