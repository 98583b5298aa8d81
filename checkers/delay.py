"""The delay checker: a message with a due time is delivered then, and not before.

Operations, with the queue as key and a value {message, due, messages}:
  send {message, due}          ok: it will be delivered at `due`, in ns on the clock of the history's times; the answer
                               may name another due time, which counts then
  deliver {} -> {messages}     ok: these messages (numbers, each sent at most once) were delivered

What breaks it:
  delivered-early   a deliver had ended more than `tolerance_ms` before the message was due
  delivered-late    its first delivery ended more than `latest_ms` after it was due, if that is demanded

A delivery happens before its operation ends, so what ended too early is early for certain. A message is due at the
earliest when its send began. With `latest_ms` demanded, acked messages that were never delivered leave it UNKNOWN.

The statistics have lateness (of first deliveries, their ends against the due times, never below 0) as quantiles,
which are lower bounds of bins at most 1/32 wide, and how many messages were `sent`, `acked`, `delivered`, delivered
again, never delivered though acked (`undelivered`), and delivered though they were never sent (`unknown`).

It does not establish that everything is delivered, or once: that is what the queue checker is for. It would kill
wheel-wrap (delivered-early), and slower ones of class LV.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from checkers.anomaly import Meaning
from checkers.buckets import bucket_count
from checkers.findings import FINDINGS, Example, Findings, gathered_findings, judged
from checkers.history_batches import history_rows
from checkers.kernels.columns import (
    INVOKE,
    NONE,
    OK,
    TYPES,
    Bool,
    Int64,
    codes,
    elements,
    integers,
    member,
    run_starts,
    whole,
    witness_order,
)
from checkers.kernels.hashing import bucket_of, mixed
from checkers.plan import CheckRequest, Engine
from checkers.statistics import bins_of, lowest_of_bin
from checkers.verdict import EXAMPLES, CheckerResult

DELAYED = pa.struct([("message", pa.int64()), ("due", pa.int64()), ("messages", pa.list_(pa.int64()))])
"""The value of this workload's operations."""

FUNCTIONS = ("send", "deliver")
SEND, DELIVER = range(2)

COLUMNS = ("index", "time", "type", "f", "key", "value")

FACTS = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("kind", pa.int8()), pa.field("key", pa.string())]
    + [pa.field(name, pa.int64()) for name in ("message", "due", "time", "index")]
)
"""What one operation says of a message, at its time; `due` is NONE where it says none."""

ASKED, ACKED, DELIVERED = range(3)

COUNTED = ("sent", "acked", "delivered", "redelivered", "undelivered", "unknown")
"""Counts that travel with the findings, without examples."""
LATENESS = "#lateness_us "
"""The same, one count for each bin of a logarithmic histogram."""

QUANTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999, "max_ns": 1.0}
MS = 1_000_000


MEANINGS: Mapping[str, Meaning] = {
    "delivered-early": Meaning(
        says="A message was delivered before it was due.",
        usually="The due time was computed from a clock that is ahead, or wrapped around the end of a timer wheel.",
    ),
    "delivered-late": Meaning(
        says="A message was delivered later after its due time than is allowed.",
        usually="The scheduler's progress was lost or stood still during a failover.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class DelayChecker:
    """Judges a delay workload's history."""

    tolerance_ms: int = 0
    """So much too early is no matter: clocks differ."""
    latest_ms: int | None = None
    name: str = "delay"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        history = engine.history(request.history, COLUMNS)
        facts = engine.mapped(history, partial(delay_facts, buckets=buckets), FACTS)
        kernel = partial(
            delay_findings,
            tolerance_ns=self.tolerance_ms * MS,
            latest_ns=None if self.latest_ms is None else self.latest_ms * MS,
        )
        found = dict(gathered_findings(engine, engine.grouped(facts, ("bucket",), kernel, FINDINGS)))
        statistics: dict[str, Any] = {
            name: found.pop(f"#{name}").count if f"#{name}" in found else 0 for name in COUNTED
        }
        bins = {int(name.removeprefix(LATENESS)): found.pop(name).count for name in list(found) if LATENESS in name}
        if bins:
            statistics["lateness"] = {"first delivery": quantiles_ns(bins)}
        undecided = []
        if self.latest_ms is not None and statistics["undelivered"]:
            undecided.append(
                f"{statistics['undelivered']} acked messages were never delivered, so it is unknown how late"
            )
        return judged(found, legal=request.legal, undecided=undecided, statistics=statistics)


def quantiles_ns(bins: Mapping[int, int]) -> dict[str, int]:
    """Of a histogram of µs."""
    numbers = sorted(bins)
    reached = np.cumsum([bins[number] for number in numbers])
    return {
        name: lowest_of_bin(numbers[int(np.searchsorted(reached, quantile * reached[-1]))]) * 1000
        for name, quantile in QUANTILES.items()
    }


def delay_facts(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: what one batch says of messages."""
    f, types = codes(batch["f"], FUNCTIONS), codes(batch["type"], TYPES)
    value = whole(batch["value"])
    message, due = integers(member(value, "message")), integers(member(value, "due"))
    sends = np.flatnonzero((f == SEND) & ((types == INVOKE) | (types == OK)) & (message != NONE))
    delivers = np.flatnonzero((f == DELIVER) & (types == OK))
    lists = member(value.take(pa.array(delivers)), "messages")
    delivered_in, delivered = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if not pa.types.is_null(lists.type):
        parents, values = elements(lists)
        delivered_in, delivered = delivers[parents], integers(values)
    row = np.concatenate((sends, delivered_in))
    which = np.concatenate((message[sends], delivered))
    kind = np.where(types[sends] == OK, ACKED, ASKED)
    return pa.table(
        {
            "bucket": bucket_of(mixed(which), buckets),
            "kind": np.concatenate((kind, np.full(len(delivered), DELIVERED))).astype(np.int8),
            "key": whole(batch["key"]).take(pa.array(row)).cast(pa.string()),
            "message": which,
            "due": np.concatenate((due[sends], np.full(len(delivered), NONE))),
            "time": batch["time"].to_numpy()[row],
            "index": batch["index"].to_numpy()[row],
        },
        schema=FACTS,
    )


def delay_findings(facts: pa.Table, *, tolerance_ns: int, latest_ns: int | None) -> pa.Table:
    """Kernel over all facts of a bucket of messages."""
    findings = Findings()
    if facts.num_rows:
        _Messages(facts).report(findings, tolerance_ns, latest_ns)
    return findings.table()


class _Messages:
    """Facts sorted by message, kind and operation; of each message the first of each kind, -1 if there is none."""

    def __init__(self, facts: pa.Table) -> None:
        column = {name: facts[name].to_numpy() for name in ("message", "kind", "due", "time", "index")}
        order = np.lexsort((column["index"], column["kind"], column["message"]))
        self.keys = facts["key"].take(pa.array(order))
        self.message, self.kind, self.due, self.time, self.index = (values[order] for values in column.values())
        starts = run_starts(self.message)
        self.of_message = np.cumsum(starts) - 1
        self.count = int(starts.sum())
        self.asked, self.acked, self.delivered = (self._first(kind) for kind in (ASKED, ACKED, DELIVERED))
        self.known = (self.asked >= 0) | (self.acked >= 0)
        stated = np.where((self.acked >= 0) & (self.due[self.acked] != NONE), self.acked, self.asked)
        due = np.where(stated >= 0, self.due[stated], NONE)
        # A send that was recorded without its call began at the latest when it ended.
        begun = self.time[np.where(self.asked >= 0, self.asked, self.acked)]
        self.stated_by = np.where(stated >= 0, stated, self.acked)
        self.due_ns = np.where(due == NONE, NONE, np.maximum(due, begun))
        self.has_due = self.known & (due != NONE)

    def _first(self, kind: int) -> Int64:
        firsts = np.flatnonzero(run_starts(self.message, self.kind) & (self.kind == kind))
        position = np.full(self.count, -1, dtype=np.int64)
        position[self.of_message[firsts]] = firsts
        return position

    def report(self, findings: Findings, tolerance_ns: int, latest_ns: int | None) -> None:
        judged = np.flatnonzero(self.has_due & (self.delivered >= 0))
        late_ns = self.time[self.delivered[judged]] - self.due_ns[judged]
        self._add(findings, "delivered-early", judged[late_ns < -tolerance_ns])
        if latest_ns is not None:
            self._add(findings, "delivered-late", judged[late_ns > latest_ns])
        numbers, sizes = np.unique(bins_of(np.maximum(late_ns, 0) // 1000), return_counts=True)
        for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
            findings.add(f"{LATENESS}{number}", size, ())
        was = self.delivered >= 0
        deliveries = np.bincount(self.of_message[self.kind == DELIVERED], minlength=self.count)
        counts: Iterable[Bool] = (
            self.known,
            self.acked >= 0,
            was & self.known,
            was & (deliveries > 1),
            (self.acked >= 0) & ~was,
            was & ~self.known,
        )
        for name, which in zip(COUNTED, counts, strict=True):
            findings.add(f"#{name}", int(which.sum()), ())

    def _add(self, findings: Findings, name: str, messages: Int64) -> None:
        stated, delivered = self.stated_by[messages], self.delivered[messages]
        order = witness_order(self.index[stated], self.index[delivered], ties=(self.message[delivered],))
        findings.add(name, len(messages), [self._example(int(i)) for i in messages[order[:EXAMPLES]]])

    def _example(self, number: int) -> Example:
        at, delivered = int(self.stated_by[number]), int(self.delivered[number])
        due_s, at_s = self.due_ns[number] / 1e9, self.time[delivered] / 1e9
        apart = f"{abs(at_s - due_s):.6f} s {'later' if at_s > due_s else 'before'}"
        return Example(
            key=self.keys[at].as_py(),
            operations=tuple(sorted({int(self.index[at]), int(self.index[delivered])})),
            tie=(int(self.message[at]),),
            because=(
                f"message {self.message[at]} was due at {due_s:.6f} s (operation {self.index[at]}) and had been "
                f"delivered by {at_s:.6f} s (operation {self.index[delivered]}), {apart}"
            ),
            details={"message": int(self.message[at]), "due_ns": int(self.due_ns[number])},
        )
