"""The queue checker: what was put in comes out, as often as the delivery mode promises.

Operations, with the queue as key and a value {value, values}:
  enqueue {value}          ok: the queue has it
  dequeue {} -> {value}    ok: delivered; null, or `values` empty, if nothing was there
  ack {value}              ok: the queue will not deliver it again
  withdraw {value}         (as a workload may call it) unless it certainly failed: it need not come out
  drain {} -> {values}     ok: delivered all that was left when it began
What an indefinite dequeue or drain still shows (a drain that was cut off, and reports what it took) came out, and so is
not lost; the dequeue took nothing else. Nothing more is concluded from it.

Elements are counted as multisets, by queue. The promises, and what breaks them:
  lost                  acked when it was enqueued, delivered less often than that, although a drain that began after
                        the ack went to the end (at-least-once, exactly-once)
  duplicated            delivered more often than anybody may have enqueued it (at-most-once, exactly-once)
  unexpected            delivered before an enqueue of it was invoked, or without one
  aborted-read          delivered, although all its enqueues had certainly failed
  redelivered-after-ack delivered by an operation that began after its ack had completed
  out-of-order          first delivered after an element that was enqueued after it (where order is promised:
                        checkers/elements/order.py)

What the mode allows is in the statistics: `lost` where at most once, `duplicated` where at least once, and in any mode
`recovered`, elements of indefinite enqueues that were delivered.

Where a drain is missing, absence proves nothing: UNKNOWN. Of a queue in which nothing is acked an indefinite dequeue
that shows nothing may have taken an element that no operation saw, an indefinite drain any number: exactly-once then
counts as broken only by more losses of that queue, and the order of at-least-once only by more elements that came late
than all indefinite dequeues may have delivered in their turn before. What one took comes again at least once, and is
lost if it does not: nobody has acknowledged it.

Where elements come out only by what the system does once they are in, what is missing is lost only if it served again.

It does not establish that empty answers were right (the linearizable queue does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, Findings, gathered_findings, judge
from checkers.api.plan import CheckRequest, Dataset, Engine
from checkers.api.verdict import CheckerResult
from checkers.buckets import bucket_count, in_buckets
from checkers.elements.order import SENT, Order, late_elements, sent_elements
from checkers.elements.rows import (
    COLUMNS,
    ROWS,
    SPANS,
    ElementGroups,
    element_groups,
    is_ok,
    process_rows,
    spans_with_heads,
)
from checkers.history_batches import history_rows
from checkers.kernels.columns import FAIL, INFO, NONE, OK, Bool, Int64
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

FUNCTIONS = ("enqueue", "dequeue", "ack", "drain")
ENQUEUE, DEQUEUE, ACK, DRAIN, WITHDRAW = range(len(FUNCTIONS) + 1)


class Delivery(Enum):
    """How often an element that was enqueued comes out."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


COUNTED = ("attempted", "acked", "delivered", "recovered")
"""Tallies that the statistics have by the same names."""
MAY_BE_TAKEN, DEQUEUES, DRAINS = TAKEN = ("may be taken", "indefinite dequeues", "indefinite drains")
"""Tallies of queues in which nothing is acked."""
QUEUE_COUNTS = pa.schema(
    [
        ("queue", pa.string()),
        *((name, pa.int64()) for name in ("lost", "acks", "dequeues", "silent dequeues", "drains")),
    ]
)
"""All dequeues here are indefinite; one that is silent shows no element that it may have taken."""
UNDRAINED = "undrained"
"""The tally of elements that are missing, and for which no drain ended later."""


MEANINGS: Mapping[str, Meaning] = {
    "lost": Meaning(
        says="An element whose enqueue was acknowledged never came out, although the queue was drained.",
        usually="The element was acknowledged before it was durable or replicated, or was committed as consumed and "
        "never delivered.",
    ),
    "duplicated": Meaning(
        says="An element came out more often than it was put in, though the delivery mode forbids that.",
        usually="An acknowledgement was lost in a failover, or the producer's request was sent twice.",
    ),
    "unexpected": Meaning(
        says="An element came out that nobody had tried to put in by then.",
        usually="Corrupt or misdirected data, or elements of an earlier run left behind.",
    ),
    "aborted-read": Meaning(
        says="An element came out although all its enqueues had certainly failed.",
        usually="The enqueue was reported as refused after it had been applied.",
    ),
    "redelivered-after-ack": Meaning(
        says="An element was delivered again after its acknowledgement had completed.",
        usually="Acknowledgements are not durable or not replicated before they are confirmed.",
    ),
    "out-of-order": Meaning(
        says="An element came out after one that was put in later, though order is promised.",
        usually="Failed deliveries are retried behind others, or two consumers share what must stay in order.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class QueueChecker:
    """Judges a queue workload's history."""

    delivery: Delivery = Delivery.AT_LEAST_ONCE
    order: Order = Order.NONE
    comes_later: bool = False
    """Elements come out by what the system does once they are in: their delay is over, their transaction is ended."""
    withdraw: str | None = None
    """What the workload calls the operation after which an element need not come out; None: there is none."""
    name: str = "queue"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("unexpected")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        functions = FUNCTIONS if self.withdraw is None else (*FUNCTIONS, self.withdraw)
        rows = partial(process_rows, functions=functions), ROWS
        operations = in_buckets(request, engine, COLUMNS, rows, (partial(spans_with_heads, head=DRAIN), SPANS))
        excuses = Excuses.by_operation(request.excuses, engine, request.history)
        findings = engine.grouped(operations, ("bucket",), partial(queue_findings, excuses=excuses), FINDINGS)
        if self.order is not Order.NONE:
            buckets = bucket_count(history_rows(request.history))
            sent = engine.grouped(
                operations, ("bucket",), partial(sent_elements, order=self.order, buckets=buckets), SENT
            )
            late = engine.grouped(sent, ("bucket",), late_elements, FINDINGS)
            findings = engine.union(findings, late)
        gathered = gathered_findings(engine, findings, request.excuses)
        found, statistics = dict(gathered.anomalies), gathered.counts(*COUNTED)
        undrained = gathered.tally(UNDRAINED).count
        undecided = []
        if undrained and self.delivery is not Delivery.AT_MOST_ONCE:
            undecided.append(
                f"{undrained} acked elements were not delivered, and no drain that began after their ack ended"
            )
        never_served = request.run is not None and request.run.facts.serves_ns is None
        if self.comes_later and never_served and "lost" in found and not found["lost"].legal:
            lost = found.pop("lost").count
            undecided.append(
                f"{lost} acked elements did not come out, but the system did not serve again to bring them out"
            )
        if self.delivery is Delivery.AT_MOST_ONCE and "lost" in found:
            statistics["lost"] = found.pop("lost").count
        if self.delivery is Delivery.AT_LEAST_ONCE and "duplicated" in found:
            statistics["duplicated"] = found.pop("duplicated").count
        if self.delivery is Delivery.EXACTLY_ONCE and "lost" in found:
            taken = _taken(operations, excuses, request, engine)
            lost = found["lost"].count
            if taken[MAY_BE_TAKEN] >= lost:
                del found["lost"]
                undecided.append(f"{lost} elements are gone, which indefinite dequeues or drains may have taken")
        if self.delivery is Delivery.AT_LEAST_ONCE and "out-of-order" in found:
            taken = _taken(operations, excuses, request, engine)
            late_count = found["out-of-order"].count
            if taken[DRAINS] or late_count <= taken[DEQUEUES]:
                del found["out-of-order"]
                undecided.append(
                    f"{late_count} elements came late, unless indefinite dequeues or drains delivered them before"
                )
        return judge(found, legal=request.legal, undecided=undecided, statistics=statistics)


def _taken(operations: Dataset, excuses: Excuses, request: CheckRequest, engine: Engine) -> Mapping[str, int]:
    """What operations of unknown outcome may have taken without a report of it: counts by the names in TAKEN."""
    of_queues = engine.grouped(operations, ("bucket",), partial(queue_counts, excuses=excuses), QUEUE_COUNTS)
    return gathered_findings(engine, engine.grouped(of_queues, ("queue",), taken_tallies, FINDINGS)).counts(*TAKEN)


def queue_counts(table: pa.Table, *, excuses: Excuses) -> pa.Table:
    """Kernel over all operations on a bucket of elements: a row of QUEUE_COUNTS for each queue in it."""
    groups = element_groups(table)
    named = groups.element != NONE
    acked = (groups.f == ENQUEUE) & named & (groups.type == OK)
    lost = _missing(groups, named) & _decided(groups, acked)
    unexcused = [some for excuse, some in _lost_by_excuse(groups, lost, acked, excuses) if excuse is None]
    indefinite = groups.type == INFO

    def by_queue(keys: Int64) -> pa.Array:
        return pa.array(np.bincount(keys, minlength=len(groups.names)))

    return pa.table(
        {
            "queue": ["" if name is None else f":{name}" for name in groups.names],
            "lost": by_queue(groups.key[groups.first[np.concatenate([*unexcused, np.empty(0, dtype=np.int64)])]]),
            "acks": by_queue(groups.key[is_ok(groups, ACK) & named]),
            "dequeues": by_queue(groups.key[indefinite & (groups.f == DEQUEUE)]),
            "silent dequeues": by_queue(groups.key[indefinite & (groups.f == DEQUEUE) & ~named]),
            "drains": by_queue(groups.key[indefinite & (groups.f == DRAIN)]),
        },
        schema=QUEUE_COUNTS,
    )


def taken_tallies(counts: pa.Table) -> pa.Table:
    """Kernel over all counts of one queue."""
    lost, acks, dequeues, silent, drains = (int(np.sum(counts[name].to_numpy())) for name in QUEUE_COUNTS.names[1:])
    findings = Findings()
    if not acks:
        findings.tally(MAY_BE_TAKEN, lost if drains or lost <= silent else 0)
        findings.tally(DEQUEUES, dequeues)
        findings.tally(DRAINS, drains)
    return findings.table()


def _lost_by_excuse(
    groups: ElementGroups, lost: Bool, acked: Bool, excuses: Excuses
) -> Iterator[tuple[int | None, Int64]]:
    """Excuses, None for those without, and the lost elements that each covers."""
    which = np.flatnonzero(lost)
    spans = groups.smallest(acked, groups.start)[which], groups.largest(acked, groups.end)[which]
    for excuse, some in excuses.split("lost", *spans):
        yield excuse, which[some]


def _missing(groups: ElementGroups, named: Bool) -> Bool:
    """Of which elements fewer came out than are in for certain."""
    kept = groups.sizes((groups.f == ENQUEUE) & named & (groups.type == OK))
    delivered = groups.sizes(is_ok(groups, DEQUEUE, DRAIN) & named)
    withdrawn = groups.sizes((groups.f == WITHDRAW) & named & (groups.type != FAIL)) > 0
    shown = groups.sizes(np.isin(groups.f, (DEQUEUE, DRAIN)) & named & (groups.type == INFO))
    return np.asarray((kept > delivered + shown) & ~withdrawn)


def _decided(groups: ElementGroups, acked: Bool) -> Bool:
    """Of which elements a drain that began after they were acked says whether they are still there."""
    drains = is_ok(groups, DRAIN)
    drained = np.full(len(groups.names), -1, dtype=np.int64)
    np.maximum.at(drained, groups.key[drains], groups.start[drains])
    return np.asarray(groups.largest(acked, groups.end) < drained[groups.key[groups.first]])


def queue_findings(table: pa.Table, *, excuses: Excuses) -> pa.Table:
    """Kernel over all operations on a bucket of elements."""
    groups = element_groups(table)
    named = groups.element != NONE
    enqueues = (groups.f == ENQUEUE) & named
    possible = enqueues & (groups.type != FAIL)
    acked = enqueues & (groups.type == OK)
    deliveries = is_ok(groups, DEQUEUE, DRAIN) & named

    tried = groups.sizes(enqueues)
    attempts, kept, delivered = groups.sizes(possible), groups.sizes(acked), groups.sizes(deliveries)
    out = delivered > 0
    early = groups.smallest(deliveries, groups.end) < groups.smallest(enqueues, groups.start)
    unexpected = out & ((tried == 0) | early)
    aborted = out & ~unexpected & (attempts == 0)
    duplicated = (delivered > attempts) & (attempts > 0)

    missing, decided = _missing(groups, named), _decided(groups, acked)
    ack = groups.smallest(is_ok(groups, ACK) & named, groups.end)
    again = (groups.largest(deliveries, groups.start) > ack) & (attempts == 1)

    findings = Findings()
    for excuse, lost in _lost_by_excuse(groups, missing & decided, acked, excuses):
        which = np.zeros(groups.count, dtype=np.bool_)
        which[lost] = True
        sentence = "was acked, but what was drained later does not hold it"
        groups.report(findings, "lost", which, sentence, excuse=excuse)
    groups.report(findings, "duplicated", duplicated, "was delivered more often than it may have been enqueued")
    groups.report(findings, "unexpected", unexpected, "was delivered before anybody had tried to enqueue it")
    groups.report(findings, "aborted-read", aborted, "was delivered, although its enqueue had certainly failed")
    groups.report(findings, "redelivered-after-ack", again, "was delivered again after its ack had completed")
    counts = {
        "attempted": int(tried.sum()),
        "acked": int(kept.sum()),
        "delivered": int(delivered.sum()),
        "recovered": int((out & (kept == 0) & (attempts > 0)).sum()),
        UNDRAINED: int((missing & ~decided).sum()),
    }
    for name, count in counts.items():
        findings.tally(name, count)
    return findings.table()
