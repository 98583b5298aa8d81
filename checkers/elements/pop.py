"""The POP checker: a message comes until it is acknowledged, never too soon, and never after that.

One topic and one group of consumers a history; every message is a number that is sent at most once. Keys mean nothing,
but that an excuse may be for messages that were sent with some key.
Operations, with values {message, invisible_ms, deliveries}:
  send {message}               ok: the topic has it
  pop {invisible_ms, in_order} ok with `deliveries`, each {message, times}: given to this process alone, for so long;
                               `times`: how often the message came before, without having been acknowledged; null
                               where nobody counts that
  ack {message}                of the last delivery of the message to this process; ok: it does not come again
  change {message, invisible_ms}   of the same delivery; ok: it is invisible from now on, for so long
  drain {invisible_ms}         a pop, when nothing has come for longer than any message may be invisible; ok without
                               deliveries: nothing is left
  dead-letters {}              ok with `deliveries`: those that came too often, and come no more

Of each message, what breaks the promise:
  lost                    its send was acked, nobody may have acknowledged it, it is no dead letter, and a drain that
                          began after the send was acked found nothing left
  redelivered-early       it came twice, the second time before the first delivery's invisible time was over
  redelivered-after-ack   it was given out by an operation that began after an acknowledgement of it was confirmed
  times-not-risen         it came again with no higher count than before
  unexpected              it came before anybody had tried to send it, or without that
  aborted-read            it came, although its send had certainly failed

What is certain, precisely. A pop gives messages out, and a change takes effect, at some moment between its begin and
its end. A delivery makes its message invisible from that moment on, for the time that the pop names. A change that was
confirmed before the next delivery began ends the invisible time anew: its own time after its own begin. Where a change
overlaps the next delivery, or its outcome is unknown, the earlier of both ends is taken. Each delivery must come when
the invisible time of the one before it is over; so a delivery that waited for another one makes a third one wait for
it. Deliveries that overlap may have come in any order: it is a breach only if no order of them keeps this rule. Of more
than MOST_AT_ONCE that overlap nothing is said: UNKNOWN. A `times` that did not rise is a breach only if the first
delivery had ended before the second began.

Duplicates are legal: a message that is not acknowledged in time comes again, and it may come late. A confirmed
acknowledgement binds the system for good: a failover is no excuse, unless the system's adapter says that what was
written around it may be lost. It kills checkpoint-after-reply, revive-drop, revive-next, renew-after-ack,
ack-before-replicated, renewal-keeps-old, revive-log-not-read, pop-count-kept and, in order, orderly-not-blocked.

Where no drain found nothing left, absence proves nothing: UNKNOWN. It does not establish that a message comes in a
given time; nor in which order, of which `checkers/elements/pop_order.py` judges where it is promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import Example, Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
from checkers.elements.rows import NEVER
from checkers.kernels.columns import (
    FAIL,
    INFO,
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
)
from checkers.kernels.hashing import bucket_of, mixed
from checkers.kernels.pairing import operations
from checkers.prefix import Finals, by_their_names
from harness.compiled import compiled, inlined
from harness.record.meaning import Meaning

DELIVERY = pa.struct([("message", pa.int64()), ("times", pa.int64()), ("queue", pa.string()), ("offset", pa.int64())])
POPPED = pa.struct(
    [
        pa.field("message", pa.int64()),
        pa.field("invisible_ms", pa.int64()),
        pa.field("in_order", pa.bool_()),
        pa.field("queue", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("deliveries", pa.list_(DELIVERY)),
    ]
)
"""The value of this workload's operations. Where messages are popped in order `queue` and `offset` are where they lie,
in deliveries and in acknowledgements."""

FUNCTIONS = ("send", "pop", "ack", "change", "drain", "dead-letters")
SEND, POP, ACK, CHANGE, DRAIN, DEAD = range(len(FUNCTIONS))
COLUMNS = ("index", "time", "process", "type", "f", "key", "value")

ROWS = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("f", pa.int8()), pa.field("type", pa.int8())]
    + [pa.field("process", pa.int32()), pa.field("key", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("message", "times", "invisible_ms", "index", "time")]
)
"""One row a delivery; an operation without deliveries has one row, with NONE where it names no message. `key`: of a
send, which one it is of those that excuses name, or OTHER_KEY; NO_KEY of all else."""

SPANS = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("f", pa.int8()), pa.field("type", pa.int8())]
    + [pa.field("process", pa.int32()), pa.field("key", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("message", "times", "invisible_ms")]
    + [pa.field(name, pa.int64()) for name in ("start", "end", "start_ns", "end_ns")]
)
"""The same with both ends of the operation; `type` is how it ended, INFO if there is no completion; then the `end` is
NEVER. A row with NONE is a drain that found nothing left; each bucket has all of these."""

NO_KEY, OTHER_KEY = -2, -1

MS = 1_000_000
LONGEST_MS = NEVER // MS
COUNTED = ("sent", "acked", "delivered", "redelivered", "acknowledged", "dead letters", "recovered")
UNDRAINED, CROWDED = "undrained", "crowded"
"""Tallies, as those of COUNTED are; the statistics do not have them."""
MOST_AT_ONCE = 8
"""The most deliveries of one message that overlap and of which all orders are tried."""
WITNESSES = 8
"""The most operations on a message that are shown."""

MEANINGS: Mapping[str, Meaning] = {
    "lost": Meaning(
        says="A message was acknowledged to its sender, no consumer acknowledged it, and it comes no more.",
        usually="It was given out before its checkpoint was safe, or what lets messages come again passed it over.",
    ),
    "redelivered-early": Meaning(
        says="A message was given to a second consumer while its delivery to the first still made it invisible.",
        usually="Two consumers were served from one offset, a changed invisible time was forgotten, or a clock was "
        "trusted that was not the one that had measured.",
    ),
    "redelivered-after-ack": Meaning(
        says="A message came again after its acknowledgement was confirmed.",
        usually="The acknowledgement was confirmed before it was safe, or another delivery of the message still stood.",
    ),
    "times-not-risen": Meaning(
        says="A message came again, and does not say that it came before as often as it did.",
        usually="It was given out again from its first place instead of through the retry topic, or its count was "
        "copied as it was.",
    ),
    "unexpected": Meaning(
        says="A message came that nobody had tried to send by then.",
        usually="Corrupt or misdirected data, or messages of an earlier run left behind.",
    ),
    "aborted-read": Meaning(
        says="A message came although its send had certainly failed.",
        usually="The send was reported as refused after it had been applied.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class PopChecker:
    """Judges a pop workload's history."""

    tolerance_ms: int = 0
    """How much too early a delivery may be: clocks run at different rates."""
    name: str = "pop"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("redelivered-after-ack", "times-not-risen", "unexpected")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        excuses = Excuses.by_operation(request.excuses, engine, request.history)
        rows = partial(process_rows, keys=excuses.keys), ROWS
        spans = in_buckets(request, engine, COLUMNS, rows, (message_spans, SPANS))
        tolerance_ns = max(-LONGEST_MS, min(self.tolerance_ms, LONGEST_MS)) * MS
        kernel = partial(pop_findings, tolerance_ns=tolerance_ns, excuses=excuses)
        found = found_in_buckets(request, engine, spans, kernel)
        undrained, crowded = found.tally(UNDRAINED).count, found.tally(CROWDED).count
        undecided = []
        if undrained:
            undecided.append(
                f"{undrained} acked messages were not acknowledged by any consumer, and no drain that began after "
                "their ack found nothing left"
            )
        if crowded:
            undecided.append(
                f"more than {MOST_AT_ONCE} deliveries overlap of {crowded} messages: some may be too early"
            )
        statistics = found.counts(*COUNTED)
        return judge(found.anomalies, legal=request.legal, undecided=undecided, statistics=statistics)


def process_rows(batch: pa.Table, *, keys: tuple[str, ...], buckets: int) -> pa.Table:
    """Kernel: the rows of a batch, in buckets of processes."""
    f = codes(batch["f"], FUNCTIONS)
    used = np.flatnonzero(f >= 0)
    batch, f = batch.take(pa.array(used)), f[used]
    value = whole(batch["value"])
    count = len(f)
    parents, found = np.empty(0, dtype=np.int64), pa.nulls(0)
    lists = member(value, "deliveries")
    if not pa.types.is_null(lists.type):
        parents, found = elements(lists)
    alone = np.ones(count, dtype=np.bool_)
    alone[parents] = False
    singles = np.flatnonzero(alone)
    row = np.concatenate((singles, parents))
    message = np.concatenate((integers(member(value, "message"))[singles], integers(member(found, "message"))))
    times = np.concatenate((np.full(len(singles), NONE), integers(member(found, "times"))))
    process = batch["process"].to_numpy().astype(np.int32)
    key = np.where((f == SEND) & batch["key"].is_valid().to_numpy(), codes(batch["key"], keys), NO_KEY).astype(np.int32)
    return pa.table(
        {
            "bucket": bucket_of(mixed(process), buckets)[row],
            "f": f[row].astype(np.int8),
            "type": codes(batch["type"], TYPES)[row].astype(np.int8),
            "process": process[row],
            "key": key[row],
            "message": message,
            "times": times,
            "invisible_ms": integers(member(value, "invisible_ms"))[row],
            "index": batch["index"].to_numpy()[row],
            "time": batch["time"].to_numpy()[row],
        },
        schema=ROWS,
    )


def message_spans(rows: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over all rows of a bucket of processes: operations, in buckets of messages."""
    position, started = operations(rows)
    column = {name: rows[name].to_numpy() for name in ROWS.names}
    message = _stated(column["message"], position, started)
    is_open = position == started
    is_ok = ~is_open & (column["type"][position] == OK)
    ends = np.flatnonzero((message == NONE) & is_ok & (column["f"][position] == DRAIN))
    named = np.flatnonzero(message != NONE)
    chosen = np.concatenate((named, np.tile(ends, buckets)))
    bucket = np.concatenate((bucket_of(mixed(message[named]), buckets), np.repeat(np.arange(buckets), len(ends))))
    position, started = position[chosen], started[chosen]
    ended = np.where(is_open[chosen], INFO, column["type"][position])
    is_open = ended == INFO
    return pa.table(
        {
            "bucket": bucket.astype(np.int32),
            "f": column["f"][position],
            "type": ended.astype(np.int8),
            "process": column["process"][position],
            "key": column["key"][position],
            "message": message[chosen],
            "times": column["times"][position],
            "invisible_ms": _stated(column["invisible_ms"], position, started),
            "start": column["index"][started],
            "end": np.where(is_open, NEVER, column["index"][position]),
            "start_ns": column["time"][started],
            "end_ns": np.where(is_open, NEVER, column["time"][position]),
        },
        schema=SPANS,
    )


def _stated(values: Int64, position: Int64, started: Int64) -> Int64:
    """By operation what its completion says, or what it leaves to its invocation."""
    said = values[position]
    return np.where(said == NONE, values[started], said)


def pop_findings(spans: pa.Table, *, tolerance_ns: int, excuses: Excuses) -> pa.Table:
    """Kernel over all operations on a bucket of messages."""
    findings = Findings()
    if spans.num_rows:
        _Messages(spans).report(findings, tolerance_ns, excuses)
    return findings.table()


class _Messages:
    """Spans sorted by message and begin; what is said of a message is at its number."""

    def __init__(self, spans: pa.Table) -> None:
        column = {name: spans[name].to_numpy() for name in SPANS.names}
        is_named = column["message"] != NONE
        self.drained = int(column["start"][~is_named].max(initial=-1))
        order = np.flatnonzero(is_named)
        order = order[np.lexsort((column["start"][order], column["message"][order]))]
        self.f, self.type, self.process, self.key, self.name, self.times, invisible_ms = (
            column[name][order].astype(np.int64)
            for name in ("f", "type", "process", "key", "message", "times", "invisible_ms")
        )
        self.start, self.end, self.start_ns, self.end_ns = (
            column[name][order] for name in ("start", "end", "start_ns", "end_ns")
        )
        self.invisible_ns = np.clip(invisible_ms, 0, LONGEST_MS) * MS
        starts = run_starts(self.name)
        self.first = np.flatnonzero(starts)
        self.message = np.cumsum(starts) - 1
        self.count = len(self.first)
        is_ok = self.type == OK
        self.is_delivery = is_ok & ((self.f == POP) | (self.f == DRAIN))
        self.is_dead = is_ok & (self.f == DEAD)

    def sizes(self, rows: Bool) -> Int64:
        return np.bincount(self.message[rows], minlength=self.count)

    def smallest(self, rows: Bool, values: Int64) -> Int64:
        result = np.full(self.count, NEVER, dtype=np.int64)
        np.minimum.at(result, self.message[rows], values[rows])
        return result

    def keys_of(self, messages: Int64, names: tuple[str, ...]) -> list[str | None] | None:
        """With which of these keys each was sent: empty if with another one, None where that is not known. None of all
        where there are no names."""
        if not names:
            return None
        sent = np.full(self.count, NO_KEY, dtype=np.int64)
        np.maximum.at(sent, self.message, self.key)
        named = {NO_KEY: None, OTHER_KEY: "", **dict(enumerate(names))}
        return [named[code] for code in sent[messages].tolist()]

    def report(self, findings: Findings, tolerance_ns: int, excuses: Excuses) -> None:
        sends, acks = self.f == SEND, self.f == ACK
        acked_send = sends & (self.type == OK)
        confirmed = acks & (self.type == OK)
        shown = self.is_delivery | self.is_dead
        tried, attempts = self.sizes(sends), self.sizes(sends & (self.type != FAIL))
        acked, came = self.sizes(acked_send) > 0, self.sizes(shown) > 0
        deliveries = self.sizes(self.is_delivery)
        early = self.smallest(shown, self.end) < self.smallest(sends, self.start)
        unexpected = came & ((tried == 0) | early)
        self._report(findings, "unexpected", unexpected, "came before anybody had tried to send it")
        aborted = came & ~unexpected & (attempts == 0)
        self._report(findings, "aborted-read", aborted, "came, although its send had certainly failed")

        is_left = acked & (self.sizes(acks & (self.type != FAIL)) == 0) & (self.sizes(self.is_dead) == 0)
        decided = self.smallest(acked_send, self.end) < self.drained
        lost = np.flatnonzero(is_left & decided)
        begun = self.smallest(acked_send, self.start)[lost]
        keys = self.keys_of(lost, excuses.keys)
        for excuse, some in excuses.split("lost", begun, np.full(len(lost), self.drained), keys=keys):
            which = np.zeros(self.count, dtype=np.bool_)
            which[lost[some]] = True
            sentence = "was acked, nobody has acknowledged it, and a drain found nothing left"
            self._report(findings, "lost", which, sentence, excuse, self.drained)
        self._report_pairs(findings, tolerance_ns, excuses)

        counts = {
            "sent": int((tried > 0).sum()),
            "acked": int(acked.sum()),
            "delivered": int((deliveries > 0).sum()),
            "redelivered": int(np.maximum(deliveries - 1, 0).sum()),
            "acknowledged": int((self.sizes(confirmed) > 0).sum()),
            "dead letters": int((self.sizes(self.is_dead) > 0).sum()),
            "recovered": int((came & ~acked & (attempts > 0)).sum()),
            UNDRAINED: int((is_left & ~decided).sum()),
        }
        for name, count in counts.items():
            findings.tally(name, count)

    def _report_pairs(self, findings: Findings, tolerance_ns: int, excuses: Excuses) -> None:
        """What two operations on a message show: each delivery with the one before it, and with acknowledgements."""
        rows = _Rows(
            self.f, self.type, self.process, self.start, self.end, self.start_ns, self.end_ns, self.invisible_ns
        )
        groups = np.append(self.first, len(self.message))
        earlier, again, crowded = early_again(rows, groups, self.is_delivery, tolerance_ns, MOST_AT_ONCE)
        findings.tally(CROWDED, crowded)
        self._add_pairs(
            findings,
            excuses,
            "redelivered-early",
            earlier,
            again,
            "came again by {1} while its delivery by {0} made it invisible",
        )
        counted = self.is_delivery & (self.times != NONE)
        most = most_before(self.message, counted, self.times, self.start, self.end)
        same = np.flatnonzero(most >= 0)
        self._add_pairs(
            findings,
            excuses,
            "times-not-risen",
            most[same],
            same,
            "came again by {1}, which says no higher count than {0}",
        )
        ack = acks_before(self.f, self.type, self.message, self.is_delivery, self.start, self.end)
        after = np.flatnonzero(ack >= 0)
        self._add_pairs(
            findings,
            excuses,
            "redelivered-after-ack",
            ack[after],
            after,
            "was acknowledged by {0}, and was given out again by {1}, which began later",
        )

    def _add_pairs(
        self, findings: Findings, excuses: Excuses, name: str, earlier: Int64, later: Int64, sentence: str
    ) -> None:
        keys = self.keys_of(self.message[later], excuses.keys)
        # Of two that overlap either may have come first, and what excuses one of both orders excuses them.
        start = np.minimum(self.start[earlier], self.start[later])
        end = np.maximum(self.end[earlier], self.end[later])
        for excuse, some in excuses.split(name, start, end, keys=keys):
            order = np.lexsort((self.name[later[some]], self.start[later[some]], self.start[earlier[some]]))
            examples = []
            for i in some[order[:EXAMPLES]].tolist():
                a, b = int(earlier[i]), int(later[i])
                message = int(self.name[b])
                witnesses = {int(self.start[a]), int(self.end[a]), int(self.start[b]), int(self.end[b])}
                examples.append(
                    Example(
                        key=None,
                        operations=tuple(sorted(witnesses)),
                        tie=(message,),
                        because=f"message {message} {sentence.format(self.end[a], self.end[b])}",
                        details={"message": message},
                    )
                )
            findings.add(name, len(some), sorted(examples, key=lambda e: (e.operations, e.tie)), excuse)

    def _report(
        self,
        findings: Findings,
        name: str,
        which: Bool,
        sentence: str,
        excuse: int | None = None,
        shown_by: int | None = None,
    ) -> None:
        """These messages have the anomaly; witnessed by their first operations."""
        found = np.flatnonzero(which)
        found = found[np.lexsort((self.name[self.first[found]], self.start[self.first[found]]))]
        examples = []
        for number in found[:EXAMPLES].tolist():
            first = int(self.first[number])
            last = int(self.first[number + 1]) if number + 1 < self.count else len(self.name)
            rows = slice(first, min(last, first + WITNESSES))
            witnesses = {int(i) for i in (*self.start[rows], *self.end[rows]) if i != NEVER}
            message = int(self.name[first])
            details: dict[str, Any] = {"message": message, "operations": last - first}
            examples.append(
                Example(
                    key=None,
                    operations=tuple(sorted(witnesses | ({shown_by} if shown_by is not None else set()))),
                    tie=(message,),
                    because=f"message {message} {sentence}",
                    details=details,
                )
            )
        findings.add(name, len(found), sorted(examples, key=lambda e: (e.operations, e.tie)), excuse)


@compiled
def most_before(message: Int64, counted: Bool, times: Int64, start: Int64, end: Int64) -> Int64:
    """By row the delivery of the same message that says the highest count of those that had ended before it began, if
    that is no lower than its own; else -1. Rows are sorted by message and start."""
    result = np.full(len(message), -1, dtype=np.int64)
    low = 0
    while low < len(message):
        high = low
        while high < len(message) and message[high] == message[low]:
            high += 1
        by_end = low + np.argsort(end[low:high])
        at = 0
        most = -1
        for row in range(low, high):
            while at < len(by_end) and end[by_end[at]] < start[row]:
                other = by_end[at]
                if counted[other] and (most < 0 or times[other] > times[most]):
                    most = other
                at += 1
            if counted[row] and most >= 0 and times[row] <= times[most]:
                result[row] = most
        low = high
    return result


@compiled
def acks_before(f: Int64, type_: Int64, message: Int64, is_delivery: Bool, start: Int64, end: Int64) -> Int64:
    """By row the acknowledgement of the same message that was confirmed first, before it began; else -1."""
    result = np.full(len(message), -1, dtype=np.int64)
    ack = -1
    for row in range(len(message)):
        if ack >= 0 and message[ack] != message[row]:
            ack = -1
        if f[row] == ACK and type_[row] == OK and (ack < 0 or end[row] < end[ack]):
            ack = row
        if is_delivery[row] and ack >= 0 and end[ack] < start[row]:
            result[row] = ack
    return result


class _Rows(NamedTuple):
    """Of operations on messages, by message and begin."""

    f: Int64
    type: Int64
    process: Int64
    start: Int64
    end: Int64
    start_ns: Int64
    end_ns: Int64
    invisible_ns: Int64


@compiled
def early_again(
    rows: _Rows, groups: Int64, is_delivery: Bool, tolerance_ns: int, most: int
) -> tuple[Int64, Int64, int]:
    """Pairs of deliveries of a message of which the second cannot have waited until it was visible again, and of how
    many messages more than `most` deliveries overlap. Of message g the rows are groups[g]:groups[g + 1].

        pop [10, 11] for 1000 · pop [500, 1500] for 1000 · pop [1600, 1610]: the second was at 1010, the third early

    Deliveries that overlap, each another one of them, lie in clusters; one cluster is over when the next one begins.
    Behind a cluster is known of each of its deliveries that may have been its last at which moment it was, at the
    earliest: the earlier it was, the more may come behind it.
    """
    earlier = np.empty(len(is_delivery), dtype=np.int64)
    again = np.empty(len(is_delivery), dtype=np.int64)
    moments = np.empty((1 << most) * most, dtype=np.int64)
    nobody = np.empty(0, dtype=np.int64)
    found = crowded = 0
    for g in range(len(groups) - 1):
        given = groups[g] + np.flatnonzero(is_delivery[groups[g] : groups[g + 1]])
        before, since = nobody, nobody
        is_crowded = False
        low = 0
        while low < len(given):
            high, until = low + 1, rows.end[given[low]]
            while high < len(given) and rows.start[given[high]] < until:
                until = max(until, rows.end[given[high]])
                high += 1
            cluster = given[low:high]
            last = rows.start_ns[cluster]
            if len(cluster) > most:
                is_crowded = True
            elif not _arrange(rows, groups[g + 1], cluster, before, since, tolerance_ns, moments, last):
                if _arrange(rows, groups[g + 1], cluster, nobody, nobody, tolerance_ns, moments, last):
                    earlier[found], again[found] = before[-1], cluster[0]
                else:
                    earlier[found], again[found] = cluster[0], cluster[1]
                    last = rows.start_ns[cluster]
                found += 1
            before, since = cluster[last < NEVER], last[last < NEVER]
            low = high
        crowded += is_crowded
    return earlier[:found].copy(), again[:found].copy(), crowded


@inlined
def _arrange(
    rows: _Rows, stop: int, cluster: Int64, before: Int64, since: Int64, tolerance_ns: int, moments: Int64, last: Int64
) -> bool:
    """Whether the deliveries of a cluster can have come one by one; `last` becomes of each the earliest moment at which
    it can have been the last one, NEVER if it cannot. One of `before`, if any, came before it, `since` then at the
    earliest. `moments` is room for that of each delivery as the last one of each set of them."""
    size = len(cluster)
    for done in range(1, 1 << size):
        for i in range(size):
            moments[done * size + i] = NEVER
            if not done >> i & 1:
                continue
            row, others, earliest = cluster[i], done ^ 1 << i, NEVER
            if others:
                for j in range(size):
                    if others >> j & 1 and moments[others * size + j] < NEVER:
                        visible = _visible_from(rows, stop, cluster[j], moments[others * size + j], row, tolerance_ns)
                        earliest = min(earliest, visible)
            elif len(before):
                for j in range(len(before)):
                    earliest = min(earliest, _visible_from(rows, stop, before[j], since[j], row, tolerance_ns))
            else:
                earliest = rows.start_ns[row]
            for j in range(size):
                if not done >> j & 1 and rows.end[cluster[j]] < rows.start[row]:
                    earliest = NEVER
            if earliest <= rows.end_ns[row]:
                moments[done * size + i] = max(earliest, rows.start_ns[row])
    can = False
    for i in range(size):
        last[i] = moments[((1 << size) - 1) * size + i]
        can = can or last[i] < NEVER
    return can


@inlined
def _visible_from(rows: _Rows, stop: int, a: int, moment_ns: int, b: int, tolerance_ns: int) -> int:
    """When the message may have been visible after delivery a, which was at that moment, as delivery b could find it,
    but for the tolerance. Its rows end before `stop`."""
    bound = _after(moment_ns, rows.invisible_ns[a])
    for row in range(a + 1, stop):
        if rows.process[row] != rows.process[a]:
            continue
        if rows.f[row] == POP or rows.f[row] == DRAIN:
            if rows.type[row] == OK:
                break
        elif rows.f[row] == CHANGE and rows.type[row] != FAIL:
            changed = _after(rows.start_ns[row], rows.invisible_ns[row])
            if rows.type[row] == OK and rows.end[row] < rows.start[b]:
                bound = changed
            elif rows.start_ns[row] <= rows.end_ns[b]:
                bound = min(bound, changed)
    return bound - tolerance_ns if tolerance_ns > 0 else _after(bound, -tolerance_ns)


@inlined
def _after(time_ns: int, span_ns: int) -> int:
    """The last moment there is where the sum is later."""
    return min(time_ns, NEVER - 1 - span_ns) + span_ns
