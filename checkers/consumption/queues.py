"""The events of each queue: whether committed offsets pass a message over, and, if members consume in order, whether
they did so, and one member at a time.

A queue holds a message at an offset if an acknowledged send says so, or if a consumer was given one from there. All of
a queue's rows are in one kernel call.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import Example, Findings, said_of
from checkers.api.verdict import EXAMPLES
from checkers.consumption.rows import (
    COMMITTED,
    CONSUME,
    FINISH,
    LATER,
    MAX,
    OUTCOMES,
    SEND,
    Consumers,
    MessageRows,
    Mode,
    Model,
    Rows,
)
from checkers.kernels.columns import INVOKE, NONE, OK, Int64, codes, integers, member, witness_order

PLACE, GIVEN, FINISHED, DONE, COMMIT = range(5)
"""Kinds of events of a queue. PLACE: an acknowledged send names an offset. GIVEN, FINISHED, DONE: a consumer was given
it, finished it in some way, or for good. COMMIT: a consumer has committed all before it."""

EVENTS = pa.schema(
    [pa.field("queue", pa.string()), pa.field("kind", pa.int8())]
    + [pa.field(name, pa.int64()) for name in ("consumer", "process", "offset", "index")]
)
"""Events of queues. `consumer` and `process` are -1 if there is none."""

COLUMNS = (
    *("index", "process", "type", "f", "key"),
    *("value.offset", "value.group", "value.member", "value.outcome"),
    *("value.messages.queue", "value.messages.offset", "value.messages.tries", "value.messages.message"),
)


def queue_events(batch: pa.Table, *, consumers: Consumers, limit: int) -> pa.Table:
    """Kernel: what one batch says of queues."""
    rows = Rows.of(batch)
    consumer = consumers.numbers(rows.value).astype(np.int64)
    offset, key = integers(member(rows.value, "offset")), batch["key"].combine_chunks().cast(pa.string())
    tables = []
    for f, kind in ((SEND, PLACE), (COMMITTED, COMMIT)):
        at = np.flatnonzero((rows.f == f) & (rows.type == OK) & (offset != NONE))
        by = consumer[at] if kind == COMMIT else np.full(len(at), -1, dtype=np.int64)
        tables.append(_events(key.take(pa.array(at)), kind, by, np.full(len(at), -1), offset[at], rows.index[at]))
    outcome = codes(member(rows.value, "outcome"), OUTCOMES)
    given = MessageRows.of(rows, (rows.f == CONSUME) & (rows.type == OK))
    finished = MessageRows.of(rows, (rows.f == FINISH) & (rows.type == INVOKE))
    kind_of = np.where((outcome[finished.row] == LATER) & (finished.tries < limit), FINISHED, DONE)
    for events, kinds in ((given, np.full(len(given.row), GIVEN)), (finished, kind_of)):
        row = events.row
        tables.append(_events(events.queue, kinds, consumer[row], rows.process[row], events.offset, rows.index[row]))
    return pa.concat_tables(tables).combine_chunks()


def _events(queue: pa.Array, kind: Int64 | int, by: Int64, process: Int64, offset: Int64, index: Int64) -> pa.Table:
    kinds = np.broadcast_to(np.asarray(kind, dtype=np.int8), len(queue))
    return pa.table([queue, kinds, by, process, offset, index], schema=EVENTS)


def queue_findings(events: pa.Table, *, consumers: Consumers, mode: Mode, excuses: Excuses) -> pa.Table:
    """Kernel over all events of one queue."""
    findings = Findings()
    queue = _Queue(events, consumers)
    for consumer in np.unique(queue.consumer[queue.consumer >= 0]).tolist():
        if consumers.model is Model.CLUSTERING and mode is not Mode.POPPING:
            queue.report_passed_over(findings, consumer, excuses)
        if mode is Mode.ORDERLY:
            queue.report_overtaken(findings, consumer, excuses)
            queue.report_overlaps(findings, consumer, excuses)
    return findings.table()


class _Queue:
    """The events of one queue, sorted by index; its places are the offsets at which it holds a message."""

    def __init__(self, events: pa.Table, consumers: Consumers) -> None:
        self.name = events["queue"][0].as_py() or ""
        self.consumers = consumers
        column = {name: events[name].to_numpy().astype(np.int64) for name in EVENTS.names[1:]}
        order = np.lexsort((column["offset"], column["index"]))
        names = EVENTS.names[1:]
        self.kind, self.consumer, self.process, self.offset, self.index = (column[name][order] for name in names)
        held = np.isin(self.kind, (PLACE, GIVEN))
        self.places = np.unique(self.offset[held])
        self.first_seen = self._first(np.flatnonzero(held))

    def _first(self, at: Int64) -> Int64:
        """By place: the first index of these events, MAX for none."""
        first = np.full(len(self.places), MAX, dtype=np.int64)
        place = np.searchsorted(self.places, self.offset[at])
        there = place < len(self.places)
        there[there] = self.places[place[there]] == self.offset[at][there]
        np.minimum.at(first, place[there], self.index[at][there])
        return first

    def _events(self, consumer: int, *kinds: int) -> Int64:
        return np.flatnonzero((self.consumer == consumer) & np.isin(self.kind, kinds))

    def report_passed_over(self, findings: Findings, consumer: int, excuses: Excuses) -> None:
        """Reports places before a committed offset that were not finished when it was committed."""
        commits = self._events(consumer, COMMIT)
        if not len(commits):
            return
        # The earliest commit beyond each place.
        by_offset = commits[np.argsort(self.offset[commits], kind="stable")]
        earliest = np.minimum.accumulate(self.index[by_offset][::-1])[::-1]
        beyond = np.searchsorted(self.offset[by_offset], self.places, side="right")
        commit = np.append(earliest, MAX)[beyond]
        finished = self._first(self._events(consumer, FINISHED, DONE))
        passed = np.flatnonzero((commit != MAX) & (finished > commit))
        begun, ended = (
            np.minimum(self.first_seen[passed], commit[passed]),
            np.maximum(self.first_seen[passed], commit[passed]),
        )
        for excuse, which in excuses.split("passed-over", begun, ended):
            found = passed[which]
            order = witness_order(commit[found], self.first_seen[found], ties=(self.places[found],))[:EXAMPLES]
            examples = [self._passed(consumer, int(found[i]), commit, finished) for i in order.tolist()]
            findings.add("passed-over", len(found), examples, excuse)

    def _passed(self, consumer: int, place: int, commit: Int64, finished: Int64) -> Example:
        offset, late = int(self.places[place]), int(finished[place])
        when = "never" if late == MAX else f"only later (operation {late})"
        return self._example(
            consumer,
            (int(commit[place]), int(self.first_seen[place])),
            (offset,),
            f"had committed an offset beyond {offset} (operation {commit[place]}), which holds a message (operation "
            f"{self.first_seen[place]}) that it consumed {when}",
            {"offset": offset},
        )

    def report_overtaken(self, findings: Findings, consumer: int, excuses: Excuses) -> None:
        """Reports messages that were given before one ahead of them was done."""
        given = self._events(consumer, GIVEN)
        done = self._first(self._events(consumer, DONE))
        latest = np.maximum.accumulate(done) if len(done) else done
        before = np.searchsorted(self.places, self.offset[given]) - 1
        late = np.flatnonzero((before >= 0) & (latest[np.maximum(before, 0)] >= self.index[given]))
        begun = np.array([self.first_seen[: before[i] + 1].min() for i in late.tolist()], dtype=np.int64)
        ended = self.index[given[late]]
        for excuse, which in excuses.split("overtaken", np.minimum(begun, ended), ended):
            found = late[which]
            order = np.lexsort((self.offset[given[found]], self.index[given[found]]))[:EXAMPLES]
            examples = [self._overtook(consumer, int(given[found[i]]), done) for i in order.tolist()]
            findings.add("overtaken", len(found), examples, excuse)

    def _overtook(self, consumer: int, event: int, done: Int64) -> Example:
        offset, index = int(self.offset[event]), int(self.index[event])
        place = int(np.flatnonzero((self.places < offset) & (done >= index))[0])
        return self._example(
            consumer,
            (index, int(self.first_seen[place])),
            (offset,),
            f"was given the message at offset {offset} (operation {index}) before it was done with the one at "
            f"{self.places[place]} (operation {self.first_seen[place]})",
            {"offset": offset, "before": int(self.places[place])},
        )

    def report_overlaps(self, findings: Findings, consumer: int, excuses: Excuses) -> None:
        """Reports times in which a process certainly consumed, from its `consume` to its `finish`, that begin within
        such a time of another process."""
        spans = self._spans(consumer)
        found: list[tuple[int, int, int, int]] = []
        last: dict[int, tuple[int, int]] = {}
        for begin, end, process in spans:
            others = [(until, since) for other, (since, until) in last.items() if other != process and until > begin]
            if others:
                until, since = max(others)
                found.append((since, until, begin, end))
            if process not in last or end > last[process][1]:
                last[process] = begin, end
            if len(last) > PROCESSES_KEPT:
                last = {other: span for other, span in last.items() if span[1] > begin}
        rows = np.array(found, dtype=np.int64).reshape(-1, 4)
        for excuse, which in excuses.split("overlap", rows[:, 0], rows[:, 2]):
            examples = [self._overlapped(consumer, *rows[i].tolist()) for i in which[:EXAMPLES].tolist()]
            findings.add("overlap", len(which), examples, excuse)

    def _spans(self, consumer: int) -> list[tuple[int, int, int]]:
        """(begin, end, process) of each consumption, by its begin."""
        events = self._events(consumer, GIVEN, FINISHED, DONE)
        begun: dict[tuple[int, int], int] = {}
        spans = []
        for i in events.tolist():
            key = int(self.process[i]), int(self.offset[i])
            if self.kind[i] == GIVEN:
                begun[key] = int(self.index[i])
            elif key in begun:
                spans.append((begun.pop(key), int(self.index[i]), key[0]))
        return sorted(spans)

    def _overlapped(self, consumer: int, since: int, until: int, begin: int, end: int) -> Example:
        return self._example(
            consumer,
            (since, until, begin, end),
            (),
            f"had a member that consumed from operation {since} to {until}, and another one from {begin} to {end}",
            {},
        )

    def _example(
        self, consumer: int, operations: tuple[int, ...], tie: tuple[int, ...], words: str, details: dict[str, int]
    ) -> Example:
        who = self.consumers.names[consumer]
        return Example(
            key=self.name,
            operations=tuple(sorted(set(operations))),
            tie=(*tie, consumer),
            because=said_of(self.name, f"{who} {words}"),
            details={"consumer": who, **details},
        )


PROCESSES_KEPT = 64
