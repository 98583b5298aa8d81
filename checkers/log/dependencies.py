"""Dependencies between transactions on queues, and the cycles among them.

The versions of a queue are its messages, in the order of their offsets, as far as acknowledgements and polls tell
these. So the order is known, but for gaps, and what follows from it follows whatever the gaps hold:

  WW  from the sender of a message to that of the next known one
  WR  from the sender of the last message that a transaction was given of a queue to who was given it: what precedes
      that message leads there by way of WW
  RW  from a poll that reached the end of the queue to the sender of the next known message behind: it was not there
      when the poll looked, or the answer would have told

A poll of a transaction reached the end if it says so (`end`), or if it asked from an offset on and was given nothing.
That an answer is short proves nothing, nor does an empty one whose beginning is unknown. Whoever records an empty
answer that was only a time-out must leave `from_offset` out. Single polls are taken to prove no end.

Left out is what cannot be trusted: messages that several operations tried to send to the queue, those at more than one
offset, and offsets that hold more than one message; they are anomalies of their own. Operations that failed take no
part; indefinite ones do where somebody was given what they sent, and what they were given tells nothing.

Single sends and polls are transactions of one operation, and are looked at only if a history has real ones: what they
contradict among themselves has names of its own.

Sources: Adya, Liskov, O'Neil, "Generalized Isolation Level Definitions" (ICDE 2000); Kingsbury, Alvaro, "Elle:
Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.buckets import bucket_count
from checkers.causal.spans import NEVER
from checkers.history_batches import history_rows
from checkers.kernels.columns import (
    FAIL,
    INFO,
    INVOKE,
    NONE,
    OK,
    Bool,
    Int8,
    Int64,
    codes,
    elements,
    integers,
    member,
    run_starts,
    whole,
)
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.rows import COLUMNS, is_ok_poll, operation_codes, reads, sends
from checkers.plan import CheckRequest, Engine
from checkers.transactions.elle.edges import EDGES, NODES, Dependency, positions
from checkers.transactions.elle.graph.search import cycles
from checkers.transactions.elle.reasons import EDGE_REASONS, first_reasons, gathered_reasons, positions_of
from checkers.transactions.evidence.explained import anomalies_of_cycles, indices_of_cycles, unexplained_edges
from checkers.transactions.evidence.shown_transactions import shown_transactions
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.verdict import AnomalySummary
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs


class Told(IntEnum):
    """ITSELF: there is this operation. SENT: a message. GIVEN: one of a poll. END: nothing was behind `offset`."""

    ITSELF = 0
    SENT = 1
    GIVEN = 2
    END = 3


STEPS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("queue", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("told", pa.int8()),
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
    ]
)
"""What a row of the history tells, in order; buckets are of processes."""

EVENTS = pa.schema(
    [*NODES, *(STEPS.field(name) for name in ("queue", "told", "message", "offset")), pa.field("place", pa.int32())]
)
"""The same of operations with both ends; `place` counts what is told of one."""

SPANS = pa.schema([*(NODES.field(name) for name in ("start", "process", "type")), TRANSACTION.field("txn")])


def transaction_cycles(engine: Engine, request: CheckRequest) -> tuple[Mapping[str, AnomalySummary], tuple[str, ...]]:
    """(cycles by name, what was not searched to the end)."""
    buckets = bucket_count(history_rows(request.history))
    history = engine.history(request.history, (*COLUMNS, "process"))
    steps = engine.mapped(history, partial(steps_of, buckets=buckets), STEPS)
    with engine.kept(engine.grouped(steps, ("bucket",), events_of, EVENTS)) as events:
        with engine.kept(engine.grouped(events, ("queue",), queue_edges, EDGES)) as dependencies:
            found = cycles(engine, engine.mapped(events, nodes, NODES), dependencies)
        if not any(summary.examples for summary in found.found.values()):
            return {}, found.undecided
        wanted = unexplained_edges(found)
        kernel = partial(queue_reasons, wanted=wanted)
        reasons = gathered_reasons(engine, engine.grouped(events, ("queue",), kernel, EDGE_REASONS), wanted)
        starts = np.array(sorted(indices_of_cycles(found, reasons)), dtype=np.int64)
        of_cycles = engine.mapped(events, partial(only, starts=starts), EVENTS)
        spans = engine.gather(engine.grouped(of_cycles, ("start",), span_of, SPANS), len(starts))
    shown = {one.index: one for one in shown_transactions(spans)}
    return anomalies_of_cycles(found, reasons, shown), found.undecided


def steps_of(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: what a batch tells, in buckets of processes."""
    process = whole(batch["process"]).to_numpy().astype(np.int32)
    lists = member(batch["value"], "txn")
    f, types = operation_codes(batch)
    is_txn = codes(batch["f"], ("txn",)) == 0
    itself = np.flatnonzero(((f >= 0) | is_txn) & (process != NEMESIS))
    nothing = np.full(len(itself), NONE)
    sent = sends(batch, f, types)
    given = reads(batch, is_ok_poll(f, types))
    key = whole(batch["key"]).cast(pa.string())
    told = [
        (Told.ITSELF, itself, key.take(pa.array(itself)), nothing, nothing),
        (Told.SENT, sent.row, key.take(pa.array(sent.row)), sent.message, sent.offset),
        (Told.GIVEN, given.row, key.take(pa.array(given.row)), given.message, given.offset),
    ]
    if pa.types.is_list(lists.type) and lists.null_count < len(lists):
        told += _told_by_parts(*elements(lists))
    row = np.concatenate([one[1] for one in told])
    kind = np.repeat([int(one[0]) for one in told], [len(one[1]) for one in told])
    table = pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(process[row]), buckets)),
            pc.fill_null(pa.concat_arrays([one[2] for one in told]), ""),
            pa.array(whole(batch["index"]).to_numpy().astype(np.int64)[row]),
            pa.array(process[row]),
            pa.array(types[row].astype(np.int8)),
            pa.array(kind.astype(np.int8)),
            pa.array(np.concatenate([one[3] for one in told])),
            pa.array(np.concatenate([one[4] for one in told])),
        ],
        schema=STEPS,
    )
    return table.filter(pa.array(process[row] != NEMESIS))


def _told_by_parts(row: Int64, parts: pa.Array) -> list[tuple[Told, Int64, pa.Array, Int64, Int64]]:
    f = codes(member(parts, "f"), ("send", "poll"))
    key = member(parts, "key").cast(pa.string())
    message, offset, begun = (integers(member(parts, name)) for name in ("message", "offset", "from_offset"))
    lists = member(parts, "messages")
    sent, polls = np.flatnonzero(f == 0), f == 1
    of, read = elements(lists)
    given, at = integers(member(read, "message")), integers(member(read, "offset"))
    given, at, of = given[polls[of]], at[polls[of]], of[polls[of]]

    size = np.bincount(of, minlength=len(parts))
    unplaced = np.bincount(of[at == NONE], minlength=len(parts)) > 0
    last = np.full(len(parts), NONE)
    np.maximum.at(last, of, at)
    answered = polls & lists.is_valid().to_numpy(zero_copy_only=False)
    says_end = pc.fill_null(member(parts, "end").cast(pa.bool_()), False).to_numpy(zero_copy_only=False)
    empty = answered & (size == 0) & (begun != NONE)
    to_end = np.flatnonzero(empty | (answered & says_end & (size > 0) & ~unplaced))
    seen = np.where(size > 0, last, begun - 1)[to_end]
    return [
        (Told.SENT, row[sent], key.take(pa.array(sent)), message[sent], offset[sent]),
        (Told.GIVEN, row[of], key.take(pa.array(of)), given, at),
        (Told.END, row[to_end], key.take(pa.array(to_end)), np.full(len(to_end), NONE), seen),
    ]


def events_of(steps: pa.Table) -> pa.Table:
    """Kernel over all STEPS of a bucket of processes. Of what did not end with ok only attempts to send are kept."""
    at = np.lexsort(tuple(steps[name].to_numpy() for name in ("offset", "message", "told", "index")))
    steps = steps.take(pa.array(at))
    told = steps["told"].to_numpy()
    of_row = np.cumsum(told == Told.ITSELF) - 1
    rows = steps.filter(pa.array(told == Told.ITSELF))
    index, process, kind = (rows[name].to_numpy() for name in ("index", "process", "type"))
    invoked = kind == INVOKE
    partner = pairs(index, process, invoked)
    other = np.where(partner == NO_PARTNER, 0, partner)
    ended = invoked & (partner != NO_PARTNER)
    tells = (kind == OK) & (np.bincount(of_row, minlength=len(index)) > 1)
    # Who tells of the operation: its completion if that is ok and tells anything, else its invocation.
    chosen = np.where(invoked, ~(ended & tells[other]), tells & (partner != NO_PARTNER))
    start = np.where(invoked, index, index[other])
    end = np.where(invoked, np.where(ended, index[other], NEVER), index)
    outcome = np.where(invoked, np.where(ended, kind[other], INFO), kind)
    attempt = (told == Told.ITSELF) | (told == Told.SENT)
    kept = np.flatnonzero(chosen[of_row] & (attempt | (kind[of_row] == OK)))
    row = of_row[kept]
    offset = np.where(kind[row] == OK, steps["offset"].to_numpy()[kept], NONE)
    taken = steps.take(pa.array(kept))
    return pa.Table.from_arrays(
        [
            pa.array(start[row]),
            pa.array(np.where(outcome == INFO, NEVER, end)[row]),
            pa.array(process[row]),
            pa.array(outcome[row].astype(np.int8)),
            taken["queue"].combine_chunks(),
            taken["told"].combine_chunks(),
            taken["message"].combine_chunks(),
            pa.array(offset),
            pa.array((kept - np.flatnonzero(told == Told.ITSELF)[row]).astype(np.int32)),
        ],
        schema=EVENTS,
    )


def nodes(events: pa.Table) -> pa.Table:
    """Kernel over EVENTS: NODES."""
    there = (events["told"].to_numpy() == Told.ITSELF) & (events["type"].to_numpy() != FAIL)
    return events.select(NODES.names).filter(pa.array(there))


@dataclass(frozen=True, kw_only=True)
class _Dependencies:
    """Of one queue. `source` and `target` are rows of EVENTS; of WW and RW, `next_message` is what the target sent."""

    kind: Int8
    source: Int64
    target: Int64
    message: Int64
    next_message: Int64

    @classmethod
    def of(cls, events: pa.Table) -> _Dependencies:
        start, told, message, offset, kind = (
            events[name].to_numpy() for name in ("start", "told", "message", "offset", "type")
        )
        at, sender = _versions(start, told, message, offset, kind)
        value = message[sender]

        shown = np.flatnonzero((told == Told.GIVEN) & (offset != NONE) & (message != NONE))
        version = np.searchsorted(at, offset[shown])
        inside = version < len(at)
        shown, version = shown[inside], version[inside]
        known = (at[version] == offset[shown]) & (value[version] == message[shown])
        shown, version = shown[known], version[known]
        order = np.lexsort((-version, start[shown]))
        shown, version = shown[order], version[order]
        last = run_starts(start[shown])
        shown, version = shown[last], version[last]

        ends = np.flatnonzero(told == Told.END)
        ends = ends[np.lexsort((offset[ends], start[ends]))]
        ends = ends[run_starts(start[ends])]
        behind = np.searchsorted(at, offset[ends], side="right")
        ends, behind = ends[behind < len(at)], behind[behind < len(at)]
        before = np.where(behind > 0, value[np.maximum(behind - 1, 0)], NONE) if len(at) else behind

        parts = (
            (Dependency.WW, sender[:-1], sender[1:], value[:-1], value[1:]),
            (Dependency.WR, sender[version], shown, value[version], np.full(len(shown), NONE)),
            (Dependency.RW, ends, sender[behind], before, value[behind]),
        )
        edge = np.repeat([int(part[0]) for part in parts], [len(part[1]) for part in parts]).astype(np.int8)
        source, target, first, second = (np.concatenate([part[i] for part in parts]) for i in range(1, 5))
        order = np.lexsort((first, start[target], start[source], edge))
        order = order[start[source[order]] != start[target[order]]]
        once = order[run_starts(edge[order], start[source[order]], start[target[order]])]
        return cls(
            kind=edge[once],
            source=source[once],
            target=target[once],
            message=first[once],
            next_message=second[once],
        )


def _versions(start: Int64, told: Int8, message: Int64, offset: Int64, kind: Int8) -> tuple[Int64, Int64]:
    """(offset, row of an attempt to send) of each message whose place and sender are beyond doubt, by offset."""
    placed = (told == Told.GIVEN) | ((told == Told.SENT) & (kind == OK))
    placed &= (offset != NONE) & (message != NONE)
    at, what = offset[placed], message[placed]
    order = np.lexsort((what, at))
    at, what = at[order], what[order]
    first = run_starts(at, what)
    at, what = at[first], what[first]
    alone = _alone(at) & _alone(what)
    at, what = at[alone], what[alone]

    sent = np.flatnonzero((told == Told.SENT) & (message != NONE))
    sent = sent[np.lexsort((start[sent], message[sent]))]
    sent = sent[run_starts(message[sent], start[sent])]
    sent = sent[_alone(message[sent])]
    sent = sent[kind[sent] != FAIL]
    if not len(sent):
        return at[:0], sent
    found = np.minimum(np.searchsorted(message[sent], what), len(sent) - 1)
    known = message[sent[found]] == what
    return at[known], sent[found[known]]


def _alone(values: Int64) -> Bool:
    """Of each value whether there is no equal one."""
    _, position, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(count[position.reshape(-1)] == 1)


def queue_edges(events: pa.Table) -> pa.Table:
    """Kernel over all EVENTS of a queue: EDGES."""
    told = _Dependencies.of(events)
    start, end, kind = (events[name].to_numpy() for name in ("start", "end", "type"))
    position = positions(start, end, kind)
    columns = (told.kind, start[told.source], position[told.source], start[told.target], position[told.target])
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=EDGES)


def queue_reasons(events: pa.Table, *, wanted: pa.Table) -> pa.Table:
    """Kernel over all EVENTS of a queue: EDGE_REASONS, at most one for each wanted edge."""
    told = _Dependencies.of(events)
    start = events["start"].to_numpy()
    source, target = start[told.source], start[told.target]
    chosen = np.flatnonzero(positions_of(wanted, told.kind, source, target) >= 0)
    values = [column[chosen] for column in (told.message, told.next_message)]
    return first_reasons(
        pa.Table.from_arrays(
            [
                pa.array(told.kind[chosen]),
                pa.array(source[chosen]),
                pa.array(target[chosen]),
                events["queue"].combine_chunks().take(pa.array(told.source[chosen])),
                *(pa.array(column, mask=column == NONE) for column in values),
                pa.nulls(len(chosen), pa.int64()),
            ],
            schema=EDGE_REASONS,
        )
    )


def only(events: pa.Table, *, starts: Int64) -> pa.Table:
    """Kernel over EVENTS: those of these operations."""
    return events.filter(pa.array(np.isin(events["start"].to_numpy(), starts)))


def span_of(events: pa.Table) -> pa.Table:
    """Kernel over all EVENTS of an operation: as a transaction on lists, of each queue what it sent and was given."""
    rows = events.sort_by("place").to_pylist()
    parts: list[dict[str, object]] = []
    given: dict[str, list[int]] = {}
    for row in rows:
        if row["told"] == Told.SENT:
            parts.append({"f": "append", "key": row["queue"], "value": row["message"], "values": None})
        elif row["told"] in (Told.GIVEN, Told.END):
            if row["queue"] not in given:
                given[row["queue"]] = []
                parts.append({"f": "r", "key": row["queue"], "value": None, "values": given[row["queue"]]})
            if row["told"] == Told.GIVEN and row["message"] != NONE:
                given[row["queue"]].append(row["message"])
    span = {name: rows[0][name] for name in ("start", "process", "type")} | {"txn": parts}
    return pa.Table.from_pylist([span], schema=SPANS)
