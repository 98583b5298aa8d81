"""What the operations of a history did to queues, as events: one row for each message sent or given, and for each end.

    process 0: txn [send m1 to q, send m2 to q] · process 1: txn [poll q: m1 at 0, m2 at 1, end]

T0 has events ITSELF, SENT m1, SENT m2; T1 has ITSELF, GIVEN m1 at 0, GIVEN m2 at 1, and END at 1: nothing was behind.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.causal.spans import NEVER
from checkers.kernels.columns import INFO, INVOKE, NONE, OK, Int64, codes, elements, integers, member, whole
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.rows import is_ok_poll, operation_codes, reads, sends
from checkers.transactions.elle.edges import NODES
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs


class EventKind(IntEnum):
    """ITSELF: the operation exists. SENT: it sent a message. GIVEN: a poll of it was given a message. END: a poll found
    nothing behind `offset`."""

    ITSELF = 0
    SENT = 1
    POLLED = 2
    END = 3


STEPS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("queue", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("event", pa.int8()),
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
    ]
)
"""The events that a row of the history shows, in order. Buckets are of processes."""

EVENTS = pa.schema(
    [*NODES, *(STEPS.field(name) for name in ("queue", "event", "message", "offset")), pa.field("place", pa.int32())]
)
"""The events of operations with both ends. `place` counts the events of each."""


def steps_of(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: the events of a batch, in buckets of processes."""
    process = whole(batch["process"]).to_numpy().astype(np.int32)
    lists = member(batch["value"], "txn")
    f, types = operation_codes(batch)
    is_txn = codes(batch["f"], ("txn",)) == 0
    itself = np.flatnonzero(((f >= 0) | is_txn) & (process != NEMESIS))
    nothing = np.full(len(itself), NONE)
    sent = sends(batch, f, types)
    given = reads(batch, is_ok_poll(f, types))
    key = whole(batch["key"]).cast(pa.string())
    found = [
        (EventKind.ITSELF, itself, key.take(pa.array(itself)), nothing, nothing),
        (EventKind.SENT, sent.row, key.take(pa.array(sent.row)), sent.message, sent.offset),
        (EventKind.POLLED, given.row, key.take(pa.array(given.row)), given.message, given.offset),
    ]
    if pa.types.is_list(lists.type) and lists.null_count < len(lists):
        found += _events_of_parts(*elements(lists))
    row = np.concatenate([one[1] for one in found])
    kind = np.repeat([int(one[0]) for one in found], [len(one[1]) for one in found])
    table = pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(process[row]), buckets)),
            pc.fill_null(pa.concat_arrays([one[2] for one in found]), ""),
            pa.array(whole(batch["index"]).to_numpy().astype(np.int64)[row]),
            pa.array(process[row]),
            pa.array(types[row].astype(np.int8)),
            pa.array(kind.astype(np.int8)),
            pa.array(np.concatenate([one[3] for one in found])),
            pa.array(np.concatenate([one[4] for one in found])),
        ],
        schema=STEPS,
    )
    return table.filter(pa.array(process[row] != NEMESIS))


def _events_of_parts(row: Int64, parts: pa.Array) -> list[tuple[EventKind, Int64, pa.Array, Int64, Int64]]:
    f = codes(member(parts, "f"), ("send", "poll", "final-poll"))
    key = member(parts, "key").cast(pa.string())
    message, offset, begun = (integers(member(parts, name)) for name in ("message", "offset", "from_offset"))
    lists = member(parts, "messages")
    sent, polls = np.flatnonzero(f == 0), f >= 1
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
        (EventKind.SENT, row[sent], key.take(pa.array(sent)), message[sent], offset[sent]),
        (EventKind.POLLED, row[of], key.take(pa.array(of)), given, at),
        (EventKind.END, row[to_end], key.take(pa.array(to_end)), np.full(len(to_end), NONE), seen),
    ]


def events_of(steps: pa.Table) -> pa.Table:
    """Kernel over all STEPS of a bucket of processes: EVENTS. If an operation did not end with ok, only its attempts to
    send are kept."""
    at = np.lexsort(tuple(steps[name].to_numpy() for name in ("offset", "message", "event", "index")))
    steps = steps.take(pa.array(at))
    event = steps["event"].to_numpy()
    of_row = np.cumsum(event == EventKind.ITSELF) - 1
    rows = steps.filter(pa.array(event == EventKind.ITSELF))
    index, process, kind = (rows[name].to_numpy() for name in ("index", "process", "type"))
    invoked = kind == INVOKE
    partner = pairs(index, process, invoked)
    other = np.where(partner == NO_PARTNER, 0, partner)
    ended = invoked & (partner != NO_PARTNER)
    shows = (kind == OK) & (np.bincount(of_row, minlength=len(index)) > 1)
    # The events are those of the completion if that is ok and shows anything; otherwise those of the invocation.
    chosen = np.where(invoked, ~(ended & shows[other]), shows & (partner != NO_PARTNER))
    start = np.where(invoked, index, index[other])
    end = np.where(invoked, np.where(ended, index[other], NEVER), index)
    outcome = np.where(invoked, np.where(ended, kind[other], INFO), kind)
    attempt = (event == EventKind.ITSELF) | (event == EventKind.SENT)
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
            taken["event"].combine_chunks(),
            taken["message"].combine_chunks(),
            pa.array(offset),
            pa.array((kept - np.flatnonzero(event == EventKind.ITSELF)[row]).astype(np.int32)),
        ],
        schema=EVENTS,
    )
