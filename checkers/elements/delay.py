"""The delay checker: a message with a due time is delivered then, and not before.

Operations, with the queue as key and a value {message, due, messages}:
  send {message, due}          ok: it will be delivered at `due`, in ns on the clock of the history's times; the answer
                               may name another due time, which counts then
  deliver {} -> {messages}     ok: these messages (numbers, each sent at most once) were delivered
  take-back {message}          ok: it will not be delivered, if that was before it was due

A workload may call these otherwise (`Terms`). Where its sends say a span instead of a time (`delay_ms`), a message is
due so long after some moment between the call and the answer: at the earliest after the call, at the latest after the
answer. Where its deliveries say at which places of the queue they found their messages (`places`), as many as those,
two places are two copies.

What breaks it:
  delivered-early   a deliver had ended more than `tolerance_ms` before the message was due
  delivered-late    its send was acknowledged, and its first delivery ended more than `latest_ms` after it was due and
                    the answer came, if that is demanded
  delivered-though-taken-back  it was delivered, when it was due or later, although it had been taken back more than
                    `tolerance_ms` before that
  delivered-again   another copy of it was delivered more than `again_ms` after its first, if that is demanded

A delivery happens before its operation ends, so what ended too early is early for certain. A message is due at the
earliest when its send began. With `latest_ms` demanded, acked messages that were never delivered leave it UNKNOWN,
unless they may legally be lost.
Of a run, time under faults counts neither as late nor as again, nor does the time in which nobody looks, from the
storm's end to the final reads; for lateness nor does what the system may take to recover from each fault.

The statistics have lateness (of first deliveries, their ends against the due times, never below 0) as quantiles,
which are lower bounds of bins at most 1/32 wide, and how many messages were `sent`, `acked`, `delivered`, delivered
again, never delivered though acked (`undelivered`), delivered though they were never sent (`unknown`), and taken back
(`taken_back`).

It does not establish that everything is delivered, or once: that is what the queue checker is for. It kills
wheel-wrap (delivered-early), slave-progress-old (delivered-again) and taken-back-forgotten
(delivered-though-taken-back).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import Example, Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine, RunUnderCheck
from checkers.api.tallies import bins_of
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
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
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

DELAYED = pa.struct(
    [
        ("message", pa.int64()),
        ("due", pa.int64()),
        ("messages", pa.list_(pa.int64())),
        ("places", pa.list_(pa.int64())),
    ]
)
"""The value of this workload's operations."""

COLUMNS = ("index", "time", "type", "f", "key", "value")

FACTS = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("kind", pa.int8()), pa.field("key", pa.string())]
    + [pa.field(name, pa.int64()) for name in ("message", "due", "place", "time", "index")]
)
"""What one operation says of a message, at its time; `due` and `place` are NONE where it says none."""

ASKED, ACKED, DELIVERED, BACK_ASKED, BACK = range(5)

COUNTED = ("sent", "acked", "delivered", "redelivered", "undelivered", "unknown", "taken_back")
"""Tallies that the statistics have by the same names."""
MISSING = "missing"
"""The tally of messages that were never delivered and are not legally lost."""
LATENESS_US = "lateness_us"
"""The tally of first deliveries by their lateness."""

QUANTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999, "max_ns": 1.0}
MS = 1_000_000
LONGEST_MS = int(np.iinfo(np.int64).max) // MS


NO_TIMES: Int64 = np.empty(0, dtype=np.int64)

MEANINGS: Mapping[str, Meaning] = {
    "delivered-early": Meaning(
        says="A message was delivered before it was due.",
        usually="The due time was computed from a clock that is ahead, or wrapped around the end of a timer wheel.",
    ),
    "delivered-late": Meaning(
        says="A message was delivered later after its due time than is allowed.",
        usually="The scheduler's progress was lost or stood still during a failover.",
    ),
    "delivered-though-taken-back": Meaning(
        says="A message was delivered although it had been taken back before it was due.",
        usually="What takes a message back was not replicated, or is not known to the node that delivers.",
    ),
    "delivered-again": Meaning(
        says="A message was delivered again longer after its first delivery than is allowed.",
        usually="The node that took over began with progress that was far too old.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a workload calls its operations, and the members of their values."""

    send: str = "send"
    deliver: tuple[str, ...] = ("deliver",)
    take_back: str = "take-back"
    message: str = "message"
    messages: str = "messages"
    by_span: bool = False
    """Sends say how long a message is delayed, and not until when."""


@dataclass(frozen=True, kw_only=True)
class Unwatched:
    """Spans of time that do not count, in order and apart; in ns."""

    begins: Int64 = field(default_factory=NO_TIMES.copy)
    ends: Int64 = field(default_factory=NO_TIMES.copy)

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Unwatched:
        """Of spans that may overlap."""
        apart: list[list[int]] = []
        for begin, end in sorted(spans):
            if apart and begin <= apart[-1][1]:
                apart[-1][1] = max(apart[-1][1], end)
            else:
                apart.append([begin, end])
        begins, ends = (np.array([span[side] for span in apart], dtype=np.int64) for side in (0, 1))
        return cls(begins=begins, ends=ends)

    def counted(self, times_ns: Int64) -> Int64:
        """How much time counts up to each."""
        before = np.searchsorted(self.begins, times_ns, side="right")
        lengths = np.concatenate(([0], np.cumsum(self.ends - self.begins)))
        still_to_go = np.zeros(len(times_ns), dtype=np.int64)
        inside = before > 0
        still_to_go[inside] = np.maximum(self.ends[before[inside] - 1] - times_ns[inside], 0)
        return np.asarray(times_ns - (lengths[before] - still_to_go), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class DelayChecker:
    """Judges a delay workload's history."""

    tolerance_ms: int = 0
    """How much too early a delivery may be: clocks differ."""
    latest_ms: int | None = None
    again_ms: int | None = None
    terms: Terms = field(default_factory=Terms)
    name: str = "delay"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS

    @property
    def final_on_a_prefix(self) -> Finals:
        """When a message is due an answer may still say, unless its send says for how long it is delayed."""
        known_when_sent = ("delivered-early", "delivered-though-taken-back") if self.terms.by_span else ()
        return by_their_names("delivered-late", *known_when_sent)

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        facts = in_buckets(request, engine, COLUMNS, (partial(delay_facts, terms=self.terms), FACTS))
        kernel = partial(
            delay_findings,
            by_span=self.terms.by_span,
            limits=Limits(
                tolerance_ns=_ns(self.tolerance_ms),
                latest_ns=None if self.latest_ms is None else _ns(self.latest_ms),
                again_ns=None if self.again_ms is None else _ns(self.again_ms),
                late=unwatched(request.run, recovering=True),
                again=unwatched(request.run, recovering=False),
            ),
            excuses=Excuses.by_operation(request.excuses, engine, request.history),
        )
        found = found_in_buckets(request, engine, facts, kernel)
        statistics: dict[str, Any] = found.counts(*COUNTED)
        lateness_us, missing = found.tally(LATENESS_US), found.tally(MISSING).count
        if lateness_us.bins:
            quantiles = {name: us * 1000 for name, us in lateness_us.quantiles(QUANTILES).items()}
            statistics["lateness"] = {"first delivery": quantiles}
        undecided = []
        if self.latest_ms is not None and missing:
            undecided.append(f"{missing} acked messages were never delivered, so it is unknown how late")
        return judge(found.anomalies, legal=request.legal, undecided=undecided, statistics=statistics)


def _ns(span_ms: int) -> int:
    """As far as 64 bits go."""
    return max(-LONGEST_MS, min(span_ms, LONGEST_MS)) * MS


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is demanded of deliveries; None: nothing."""

    tolerance_ns: int
    latest_ns: int | None
    again_ns: int | None
    late: Unwatched
    """What does not count as lateness."""
    again: Unwatched
    """What does not count between two copies."""


def unwatched(run: RunUnderCheck | None, *, recovering: bool) -> Unwatched:
    """The time under faults, and while nobody looks; with what the system may take to recover from each."""
    if run is None:
        return Unwatched()
    margin_ns = round((run.recovers_within_s or 0.0) * 1e9) if recovering else 0
    spans = [(fault.start_ns, fault.stop_ns + margin_ns) for fault in run.faults.struck]
    if run.facts.healed_ns is not None and run.facts.final_from_ns is not None:
        spans.append((run.facts.healed_ns, run.facts.final_from_ns))
    return Unwatched.of(spans)


def delay_facts(batch: pa.Table, *, terms: Terms, buckets: int) -> pa.Table:
    """Kernel: what one batch says of messages."""
    named = (terms.send, *terms.deliver, terms.take_back)
    f, types = codes(batch["f"], named), codes(batch["type"], TYPES)
    value, times = whole(batch["value"]), batch["time"].to_numpy()
    message, due = integers(member(value, terms.message)), integers(member(value, "due"))
    if terms.by_span:
        delay_ms = integers(member(value, "delay_ms"))
        span_ns = np.clip(delay_ms, -LONGEST_MS, LONGEST_MS) * MS
        due = np.where(
            delay_ms == NONE, NONE, np.minimum(times, np.iinfo(np.int64).max - np.maximum(span_ns, 0)) + span_ns
        )
    is_back = f > len(terms.deliver)
    says = np.flatnonzero(((f == 0) | is_back) & ((types == INVOKE) | (types == OK)) & (message != NONE))
    delivers = np.flatnonzero((f > 0) & ~is_back & (types == OK))
    delivered_in, delivered = _listed(value, delivers, terms.messages)
    places = _listed(value, delivers, "places")[1]
    if len(places) != len(delivered):
        places = np.full(len(delivered), NONE, dtype=np.int64)
    row = np.concatenate((says, delivered_in))
    which = np.concatenate((message[says], delivered))
    kind = np.where(types[says] == OK, ACKED, ASKED)
    kind[is_back[says]] += BACK_ASKED
    return pa.table(
        {
            "bucket": bucket_of(mixed(which), buckets),
            "kind": np.concatenate((kind, np.full(len(delivered), DELIVERED))).astype(np.int8),
            "key": whole(batch["key"]).take(pa.array(row)).cast(pa.string()),
            "message": which,
            "due": np.concatenate((due[says], np.full(len(delivered), NONE))),
            "place": np.concatenate((np.full(len(says), NONE), places)),
            "time": times[row],
            "index": batch["index"].to_numpy()[row],
        },
        schema=FACTS,
    )


def _listed(value: pa.Array, rows: Int64, name: str) -> tuple[Int64, Int64]:
    """(row, element) of that list in each of these rows."""
    lists = member(value.take(pa.array(rows)), name)
    if pa.types.is_null(lists.type):
        return NO_TIMES, NO_TIMES
    parents, values = elements(lists)
    return rows[parents], integers(values)


def delay_findings(facts: pa.Table, *, by_span: bool, limits: Limits, excuses: Excuses) -> pa.Table:
    """Kernel over all facts of a bucket of messages."""
    findings = Findings()
    if facts.num_rows:
        _Messages(facts, excuses, by_span=by_span).report(findings, limits)
    return findings.table()


class _Messages:
    """Facts sorted by message, kind and operation; of each message the first of each kind, -1 if there is none."""

    def __init__(self, facts: pa.Table, excuses: Excuses, *, by_span: bool) -> None:
        column = {name: facts[name].to_numpy() for name in ("message", "kind", "due", "place", "time", "index")}
        order = np.lexsort((column["index"], column["kind"], column["message"]))
        self.excuses = excuses
        self.keys = facts["key"].take(pa.array(order))
        self.message, self.kind, self.due, self.place, self.time, self.index = (
            values[order] for values in column.values()
        )
        starts = run_starts(self.message)
        self.of_message = np.cumsum(starts) - 1
        self.count = int(starts.sum())
        self.asked, self.acked, self.delivered = (self._first(kind) for kind in (ASKED, ACKED, DELIVERED))
        self.back_asked, self.back = self._first(BACK_ASKED), self._first(BACK)
        self.was_sent = (self.asked >= 0) | (self.acked >= 0)
        answered = (self.acked >= 0) & (self.due[self.acked] != NONE)
        stated = np.where(answered & ~by_span, self.acked, self.asked)
        stated = np.where(stated >= 0, stated, np.where(answered, self.acked, -1))
        due = np.where(stated >= 0, self.due[stated], NONE)
        # A send that was recorded without its call began at the latest when it ended.
        begun = self.time[np.where(self.asked >= 0, self.asked, self.acked)]
        self.stated_by = np.where(stated >= 0, stated, self.acked)
        self.due_ns = np.where(due == NONE, NONE, np.maximum(due, begun))
        # An operation may take place until it ends, and one of unknown outcome at any time: that is never late.
        taken_ns = np.where(answered & by_span, self.due[self.acked], self.due_ns)
        self.late_from_ns = np.maximum(taken_ns, self.time[self.acked])
        self.has_due = self.was_sent & (due != NONE)

    def _first(self, kind: int) -> Int64:
        firsts = np.flatnonzero(run_starts(self.message, self.kind) & (self.kind == kind))
        position = np.full(self.count, -1, dtype=np.int64)
        position[self.of_message[firsts]] = firsts
        return position

    def report(self, findings: Findings, limits: Limits) -> None:
        judged = np.flatnonzero(self.has_due & (self.delivered >= 0))
        delivered_ns = self.time[self.delivered[judged]]
        late_ns = delivered_ns - self.due_ns[judged]
        self._add(findings, "delivered-early", judged[late_ns < -limits.tolerance_ns])
        left_ns = self.due_ns[judged] - self.time[self.back[judged]]
        in_time = (self.back[judged] >= 0) & (left_ns > limits.tolerance_ns)
        self._report_taken_back(findings, judged[in_time & (late_ns >= -limits.tolerance_ns)])
        if limits.latest_ns is not None:
            counted_ns = limits.late.counted(delivered_ns) - limits.late.counted(self.late_from_ns[judged])
            is_late = (counted_ns > limits.latest_ns) & (self.acked[judged] >= 0)
            self._add(findings, "delivered-late", judged[is_late])
        if limits.again_ns is not None:
            self._report_copies(findings, limits.again, limits.again_ns)
        # What is not watched delays nothing that anybody could know of.
        known_ns = np.minimum(late_ns, limits.late.counted(delivered_ns) - limits.late.counted(self.due_ns[judged]))
        findings.tally_by_bin(LATENESS_US, bins_of(np.maximum(known_ns, 0) // 1000))
        was = self.delivered >= 0
        deliveries = np.bincount(self.of_message[self.kind == DELIVERED], minlength=self.count)
        counts: Iterable[Bool] = (
            self.was_sent,
            self.acked >= 0,
            was & self.was_sent,
            was & (deliveries > 1),
            (self.acked >= 0) & ~was,
            was & ~self.was_sent,
            self.back >= 0,
        )
        for name, which in zip(COUNTED, counts, strict=True):
            findings.tally(name, int(which.sum()))
        gone = np.flatnonzero((self.acked >= 0) & ~was & (self.back_asked < 0))
        for excuse, some in self.excuses.split("lost", self.index[self.stated_by[gone]], self.index[self.acked[gone]]):
            if excuse is None:
                findings.tally(MISSING, len(some))

    def _report_taken_back(self, findings: Findings, messages: Int64) -> None:
        """What takes a message back may be lost as any message, and comes too late by a wrong clock."""
        asked, delivered = self.index[self.back_asked[messages]], self.index[self.delivered[messages]]
        for excuse, some in self.excuses.split("delivered-though-taken-back", asked, delivered):
            chosen = messages[some[np.argsort(asked[some])][:EXAMPLES]].tolist()
            findings.add("delivered-though-taken-back", len(some), [self._taken_back(one) for one in chosen], excuse)

    def _taken_back(self, number: int) -> Example:
        back, delivered = int(self.back[number]), int(self.delivered[number])
        return Example(
            key=self.keys[delivered].as_py(),
            operations=tuple(sorted({int(self.index[back]), int(self.index[delivered])})),
            tie=(int(self.message[back]),),
            because=(
                f"message {self.message[back]}, due at {self.due_ns[number] / 1e9:.6f} s, had been taken back by "
                f"{self.time[back] / 1e9:.6f} s (operation {self.index[back]}), and was delivered by "
                f"{self.time[delivered] / 1e9:.6f} s (operation {self.index[delivered]})"
            ),
            details={"message": int(self.message[back]), "due_ns": int(self.due_ns[number])},
        )

    def _report_copies(self, findings: Findings, unwatched: Unwatched, again_ns: int) -> None:
        """Messages of which a second copy came long after the first."""
        rows = np.flatnonzero((self.kind == DELIVERED) & (self.place != NONE))
        rows = rows[np.lexsort((self.index[rows], self.place[rows], self.message[rows]))]
        copies = rows[run_starts(self.message[rows], self.place[rows])]
        counted_ns = unwatched.counted(self.time)
        first = self.delivered[self.of_message[copies]]
        late = copies[(counted_ns[copies] - counted_ns[first] > again_ns) & self.was_sent[self.of_message[copies]]]
        messages, which = np.unique(self.of_message[late], return_index=True)
        last = np.full(self.count, -1, dtype=np.int64)
        last[messages] = late[which]
        self._add(findings, "delivered-again", messages, last)

    def _add(self, findings: Findings, name: str, messages: Int64, again: Int64 | None = None) -> None:
        """`again`: of each message the row of a copy that came later."""
        stated, delivered = self.stated_by[messages], self.delivered[messages]
        shown = delivered if again is None else again[messages]
        for excuse, some in self.excuses.split(name, self.index[stated], self.index[shown]):
            seen = shown[some]
            order = some[witness_order(self.index[stated[some]], self.index[seen], ties=(self.message[seen],))]
            chosen = messages[order[:EXAMPLES]].tolist()
            examples = [self._example(number) if again is None else self._copy(number, again) for number in chosen]
            findings.add(name, len(some), examples, excuse)

    def _copy(self, number: int, again: Int64) -> Example:
        first, later = int(self.delivered[number]), int(again[number])
        apart_s = (self.time[later] - self.time[first]) / 1e9
        return Example(
            key=self.keys[first].as_py(),
            operations=tuple(sorted({int(self.index[first]), int(self.index[later])})),
            tie=(int(self.message[first]),),
            because=(
                f"message {self.message[first]} was delivered (operation {self.index[first]}), and another copy of it "
                f"{apart_s:.6f} s later (operation {self.index[later]})"
            ),
            details={"message": int(self.message[first]), "place": int(self.place[later])},
        )

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
