"""The order of what is popped in order: of a queue nothing is given out before what lies before it is acknowledged.

Histories are those of the pop workload (`checkers/elements/pop.py`) whose deliveries say where each message lies,
{message, times, queue, offset}, and whose acknowledgements say the same of theirs. The promise: when an answer has the
message at an offset of a queue, then each message at a lower offset of that queue was acknowledged, or the same answer
has it, further ahead. So a queue waits for the consumers that have messages of it; once their invisible time is over,
all that is left comes again first, and in its order.

  overtaken    an answer has a message, and a message at a lower offset of its queue is neither in it, further ahead,
               nor can it have been acknowledged by then

What is certain, precisely. A queue holds a message at an offset if anybody was ever given one from there. An
acknowledgement may count from when it was asked for, unless it was certainly refused; the answer was certainly made
before it came. Whether a message was to come at all, too early, or again is `checkers/elements/pop.py`'s business.

It does not establish that a queue goes on. Mutants it kills: left-over-skipped, order-info-lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, Example, Findings, gathered_findings, judge, said_of
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.elements.pop import ACK, DRAIN, FUNCTIONS, POP
from checkers.elements.rows import NEVER
from checkers.kernels.columns import FAIL, INVOKE, OK, TYPES, Int64, codes, elements, integers, member, whole
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

GIVEN, ACK_ASKED, ACK_REFUSED = range(3)

EVENTS = pa.schema(
    [pa.field("queue", pa.string()), pa.field("kind", pa.int8()), pa.field("process", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("offset", "message", "index", "position")]
)
"""`position` is the delivery's in its answer."""

COLUMNS = ("index", "process", "type", "f", "value")

MEANINGS: Mapping[str, Meaning] = {
    "overtaken": Meaning(
        says="In order, a message was given out although one before it in its queue was not acknowledged.",
        usually="The queue was not kept closed while somebody had messages of it, or a new master did not know who has "
        "which.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class PopOrderChecker:
    """Judges the order of a pop workload's history."""

    name: str = "pop-order"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("overtaken")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        events = engine.mapped(engine.history(request.history, COLUMNS), queue_events, EVENTS)
        excuses = Excuses.by_operation(request.excuses, engine, request.history)
        found = engine.grouped(events, ("queue",), partial(queue_findings, excuses=excuses), FINDINGS)
        anomalies = gathered_findings(engine, found, request.excuses).anomalies
        return judge(anomalies, legal=request.legal, undecided=(), statistics={})


def queue_events(batch: pa.Table) -> pa.Table:
    """Kernel: what one batch says of queues."""
    f, type_, value = codes(batch["f"], FUNCTIONS), codes(batch["type"], TYPES), whole(batch["value"])
    index, process = batch["index"].to_numpy(), batch["process"].to_numpy().astype(np.int32)
    answers = np.flatnonzero(((f == POP) | (f == DRAIN)) & (type_ == OK))
    tables = [_delivery_events(value.take(pa.array(answers)), index[answers], process[answers])]
    own_queue = member(value, "queue").cast(pa.string())
    for kind, of_type in ((ACK_ASKED, INVOKE), (ACK_REFUSED, FAIL)):
        at = np.flatnonzero((f == ACK) & (type_ == of_type) & own_queue.is_valid().to_numpy(zero_copy_only=False))
        tables.append(
            _events(
                own_queue.take(pa.array(at)),
                kind,
                process[at],
                integers(member(value, "offset"))[at],
                integers(member(value, "message"))[at],
                index[at],
                np.zeros(len(at), dtype=np.int64),
            )
        )
    return pa.concat_tables(tables).combine_chunks()


def _delivery_events(value: pa.Array, index: Int64, process: Int64) -> pa.Table:
    lists = member(value, "deliveries")
    if pa.types.is_null(lists.type):
        return EVENTS.empty_table()
    row, found = elements(lists)
    first = np.searchsorted(row, row)
    queue = member(found, "queue").cast(pa.string())
    table = _events(
        queue,
        GIVEN,
        process[row],
        integers(member(found, "offset")),
        integers(member(found, "message")),
        index[row],
        np.arange(len(row)) - first,
    )
    return table.filter(queue.is_valid())


def _events(
    queue: pa.Array, kind: int, process: Int64, offset: Int64, message: Int64, index: Int64, position: Int64
) -> pa.Table:
    kinds = np.full(len(queue), kind, dtype=np.int8)
    return pa.table([queue, kinds, process, offset, message, index, position], schema=EVENTS)


def queue_findings(events: pa.Table, *, excuses: Excuses) -> pa.Table:
    """Kernel over all events of one queue."""
    findings = Findings()
    _Queue(events).report(findings, excuses)
    return findings.table()


class _Queue:
    """The events of one queue, by index; deliveries of one answer in its order."""

    def __init__(self, events: pa.Table) -> None:
        self.name = events["queue"][0].as_py()
        column = {name: events[name].to_numpy().astype(np.int64) for name in EVENTS.names[1:]}
        order = np.lexsort((column["position"], column["index"]))
        self.kind, self.process, self.offset, self.message, self.index = (
            column[name][order] for name in ("kind", "process", "offset", "message", "index")
        )
        self.deliveries = np.flatnonzero(self.kind == GIVEN)
        self.places = np.unique(self.offset[self.deliveries])
        self.asked = self._acknowledged_from()

    def _acknowledged_from(self) -> Int64:
        """Of each place: from which operation on it may count as acknowledged; NEVER for never."""
        open_: dict[tuple[int, int], int] = {}
        asks: dict[int, list[int]] = {}
        for i in np.flatnonzero(self.kind != GIVEN).tolist():
            offset, asker = int(self.offset[i]), (int(self.process[i]), int(self.offset[i]))
            if self.kind[i] == ACK_ASKED:
                open_[asker] = int(self.index[i])
                asks.setdefault(offset, []).append(int(self.index[i]))
            elif asker in open_:
                asks[offset].remove(open_.pop(asker))
        return np.array([min(asks.get(offset, ()), default=NEVER) for offset in self.places.tolist()], dtype=np.int64)

    def report(self, findings: Findings, excuses: Excuses) -> None:
        found: list[tuple[int, int]] = []
        waiting = 0
        for answer in np.split(self.deliveries, np.flatnonzero(np.diff(self.index[self.deliveries])) + 1):
            if not len(answer):
                continue
            end = int(self.index[answer[0]])
            while waiting < len(self.places) and self.asked[waiting] < end:
                waiting += 1
            ahead: set[int] = set()
            for i in answer.tolist():
                place = self._first_missing(waiting, end, ahead)
                if place < self.offset[i]:
                    found.append((i, place))
                ahead.add(int(self.offset[i]))
        rows = np.array(found, dtype=np.int64).reshape(-1, 2)
        known = self._first_known(rows[:, 1])
        ended = self.index[rows[:, 0]]
        for excuse, which in excuses.split("overtaken", np.minimum(known, ended), ended):
            examples = [
                self._example(int(rows[i, 0]), int(rows[i, 1]), int(known[i])) for i in which[:EXAMPLES].tolist()
            ]
            findings.add("overtaken", len(which), examples, excuse)

    def _first_missing(self, waiting: int, end: int, ahead: set[int]) -> int:
        """The lowest place that cannot have been acknowledged by then, and that the answer has not shown yet."""
        while waiting < len(self.places):
            place = int(self.places[waiting])
            if self.asked[waiting] >= end and place not in ahead:
                return place
            waiting += 1
        return NEVER

    def _first_known(self, places: Int64) -> Int64:
        """The first answer that had each of these."""
        first: dict[int, int] = {}
        for i in self.deliveries.tolist():
            first.setdefault(int(self.offset[i]), int(self.index[i]))
        return np.array([first[place] for place in places.tolist()], dtype=np.int64)

    def _example(self, event: int, place: int, acknowledged_by: int) -> Example:
        offset, index, message = int(self.offset[event]), int(self.index[event]), int(self.message[event])
        return Example(
            key=self.name,
            operations=tuple(sorted({index, acknowledged_by})),
            tie=(message, offset),
            because=said_of(
                self.name,
                f"message {message} at offset {offset} was given out (operation {index}) before the message at {place} "
                f"(operation {acknowledged_by}) could have been acknowledged",
            ),
            details={"message": message, "offset": offset, "before": place},
        )
