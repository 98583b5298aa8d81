"""The steps of consumers and producers, from one read (or ack) to the next.

A process's polls of one queue are one consumer, whether they are single ones or parts of transactions. (Single final
polls are not: one process reads many replicas, piece by piece.) The next step only depends on what was read last, and
on an invocation that asks for an offset at or below that (a seek, after which the consumer may start anywhere). So a
stretch of the history folds into one segment for each consumer, segments fold into longer ones, and the rows of a
batch, which are consecutive, shrink to their consumers before anything is shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import NONE, OK, Bool, Int64, integers, member, run_starts
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.final_reads import FinalReads
from checkers.log.jumps import (
    BACK_INTERNAL,
    BACK_POLL,
    BACK_SEND,
    SKIP_INTERNAL,
    SKIP_POLL,
    jump_rows,
)
from checkers.log.rows import (
    FINAL_POLL,
    PLAIN_MEMBERS,
    POLL,
    Reads,
    count_alone,
    is_consumer_poll_invocation,
    is_ok_poll,
    operation_codes,
    reads,
    sends,
    with_parts,
)
from harness.compiled import compiled

STEPPED = (
    *("index", "process", "type", "f", "key", "value.offset", "value.messages.offset"),
    *(f"value.txn.{name}" for name in ("f", "key", "offset", "messages.offset", "from_offset", "repositioned")),
)
"""The columns of a history that are looked at here."""

PLACE_BITS = 20
"""How many bits the place of a part in its transaction has."""

NEVER = int(np.iinfo(np.int64).max)
"""The lowest offset that was asked for, if none was."""

STEPS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("jump", pa.int8()),
        pa.field("role", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("queue", pa.int32()),
        pa.field("order", pa.int64()),
        pa.field("lowest_asked", pa.int64()),
        pa.field("head_index", pa.int64()),
        pa.field("head", pa.int64()),
        pa.field("tail_index", pa.int64()),
        pa.field("tail", pa.int64()),
    ]
)
"""`jump` -1: a segment. `head`: the first offset read in it, `tail`: where it leaves the consumer (NONE after a
seek), `lowest_asked`: by invocations before the head. Otherwise a jump from `tail` to `head`."""

CONSUMER, PRODUCER = range(2)


def consumer_steps(batch: pa.Table, *, final: FinalReads, buckets: int) -> pa.Table:
    """Kernel: the segments of one batch, and the jumps inside it.

    Rows are folded only if the batch is a stretch of the history without holes; otherwise each row is a segment.
    """
    whole_index = batch["index"].to_numpy()
    alone = count_alone(batch)
    batch = with_parts(batch, (*PLAIN_MEMBERS, "from_offset", "repositioned"))
    index = batch["index"].to_numpy()
    is_part = np.arange(len(index)) >= alone
    f, types = operation_codes(batch)
    process = batch["process"].to_numpy().astype(np.int64)
    queue = final.queue_numbers(batch["key"]).astype(np.int64)
    sent = sends(batch, f, types)
    acked = (sent.type == OK) & (sent.offset != NONE)
    read_at_all = reads(batch, is_ok_poll(f, types))
    read = read_at_all.of((f == POLL) | (is_part & (f == FINAL_POLL)))
    value = batch["value"]
    asked = np.where(is_part, integers(member(value, "from_offset")), integers(member(value, "offset")))
    asks = np.flatnonzero(is_consumer_poll_invocation(f, types) & (asked != NONE))
    repositioned = pc.fill_null(member(value, "repositioned").cast(pa.bool_()), False).to_numpy(zero_copy_only=False)
    asked_by_parts = np.where(repositioned, NONE, np.where(is_part & (asked != NONE), asked, NEVER))
    first = np.flatnonzero(run_starts(read.row))
    last = np.append(first[1:], len(read.row))[: len(first)] - 1

    row = np.concatenate((asks, read.row[first], sent.row[acked]))
    nothing = np.full(len(asks), NONE, dtype=np.int64)
    segments = Segments(
        role=np.repeat((CONSUMER, CONSUMER, PRODUCER), (len(asks), len(first), int(acked.sum()))),
        process=process[row],
        queue=queue[row],
        order=_order(index, alone)[row],
        lowest_asked=np.concatenate((asked[asks], asked_by_parts[read.row[first]], np.full(int(acked.sum()), NEVER))),
        head_index=index[row],
        head=np.concatenate((nothing, read.offset[first], sent.offset[acked])),
        tail_index=index[row],
        tail=np.concatenate((nothing, read.offset[last], sent.offset[acked])),
    )
    inside = _internal_jumps(read_at_all, index, queue, process)
    if len(whole_index) and bool(np.all(np.diff(whole_index) == 1)):
        segments, jumps = segments.folded()
        return pa.concat_tables([segments.table(buckets), jumps.table(buckets), inside.table(buckets)]).combine_chunks()
    return pa.concat_tables([segments.table(buckets), inside.table(buckets)]).combine_chunks()


def _order(index: Int64, alone: int) -> Int64:
    """The order in which rows happened; those from `alone` on are parts of transactions."""
    place = np.zeros(len(index), dtype=np.int64)
    starts = np.flatnonzero(run_starts(index[alone:]))
    sizes = np.diff(np.append(starts, len(index) - alone))
    place[alone:] = np.arange(len(index) - alone) - np.repeat(starts, sizes)
    return (index << PLACE_BITS) + np.minimum(place, (1 << PLACE_BITS) - 1)


def consumer_jumps(steps: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over all segments and jumps of a bucket of consumers and producers: their jumps, as PLACES."""
    is_segment = pc.equal(steps["jump"], -1)
    jumps = Jumps.of(steps.filter(pc.invert(is_segment)))
    _, across = Segments.of(steps.filter(is_segment)).folded()
    return pa.concat_tables([jumps.places(buckets), across.places(buckets)]).combine_chunks()


@dataclass(frozen=True, kw_only=True)
class Segments:
    """Stretches of the history of one consumer or producer each; arrays of equal length."""

    role: Int64
    process: Int64
    queue: Int64
    order: Int64
    lowest_asked: Int64
    head_index: Int64
    head: Int64
    tail_index: Int64
    tail: Int64

    @classmethod
    def of(cls, steps: pa.Table) -> Segments:
        return cls(**{field.name: steps[field.name].to_numpy().astype(np.int64) for field in fields(cls)})

    def folded(self) -> tuple[Segments, Jumps]:
        """One segment for each consumer and producer, and the jumps between those that it was made of."""
        order = np.lexsort((self.order, self.role, self.queue, self.process))
        column = {field.name: getattr(self, field.name)[order] for field in fields(self)}
        starts = run_starts(column["process"], column["queue"], column["role"])
        group, previous = fold(
            starts,
            column["lowest_asked"],
            column["head_index"],
            column["head"],
            column["tail_index"],
            column["tail"],
        )
        first = np.flatnonzero(starts)
        whole = {name: values[first] for name, values in column.items()}
        for position, name in enumerate(("lowest_asked", "head_index", "head", "tail_index", "tail")):
            whole[name] = group[position]

        later = np.flatnonzero(previous >= 0)
        earlier = previous[later]
        came, went = column["tail"][earlier], column["head"][later]
        producer = column["role"][later] == PRODUCER
        jump = np.where(went <= came, np.where(producer, BACK_SEND, BACK_POLL), SKIP_POLL)
        real = (went <= came) | (~producer & (went - came >= 2))
        jumps = Jumps(
            jump=jump[real],
            process=column["process"][later][real],
            queue=column["queue"][later][real],
            tail_index=column["tail_index"][earlier][real],
            tail=came[real],
            head_index=column["head_index"][later][real],
            head=went[real],
        )
        return Segments(**whole), jumps

    def table(self, buckets: int) -> pa.Table:
        return _steps(self, {"jump": np.full(len(self.role), -1)}, buckets)


@dataclass(frozen=True, kw_only=True)
class Jumps:
    """Steps that did not go to the next offset; arrays of equal length."""

    jump: Int64
    process: Int64
    queue: Int64
    tail_index: Int64
    tail: Int64
    head_index: Int64
    head: Int64

    @classmethod
    def of(cls, steps: pa.Table) -> Jumps:
        return cls(**{field.name: steps[field.name].to_numpy().astype(np.int64) for field in fields(cls)})

    def table(self, buckets: int) -> pa.Table:
        zeros = np.zeros(len(self.jump), dtype=np.int64)
        return _steps(self, {"role": zeros, "order": self.head_index, "lowest_asked": zeros}, buckets)

    def places(self, buckets: int) -> pa.Table:
        return jump_rows(
            jump=self.jump,
            queue=self.queue,
            previous=self.tail_index,
            index=self.head_index,
            start=self.tail,
            end=self.head,
            buckets=buckets,
        )


def _steps(rows: Segments | Jumps, others: dict[str, Int64], buckets: int) -> pa.Table:
    column = {field.name: getattr(rows, field.name) for field in fields(rows)} | others
    column["bucket"] = bucket_of(mixed(rows.queue, mixed(rows.process)), buckets).astype(np.int64)
    return pa.Table.from_arrays(
        [pa.array(column[field.name].astype(field.type.to_pandas_dtype())) for field in STEPS], schema=STEPS
    )


def _internal_jumps(read: Reads, index: Int64, queue: Int64, process: Int64) -> Jumps:
    """Between neighbours in one poll."""
    step = np.diff(read.offset)
    at = np.flatnonzero((read.row[1:] == read.row[:-1]) & (step != 1))
    row = read.row[at]
    return Jumps(
        jump=np.where(step[at] <= 0, BACK_INTERNAL, SKIP_INTERNAL),
        process=process[row],
        queue=queue[row],
        tail_index=index[row],
        tail=read.offset[at],
        head_index=index[row],
        head=read.offset[at + 1],
    )


@compiled
def fold(
    starts: Bool, lowest_asked: Int64, head_index: Int64, head: Int64, tail_index: Int64, tail: Int64
) -> tuple[Int64, Int64]:
    """Fold sorted segments into one for each group, of which `starts` marks the first.

    Returns the folded (lowest_asked, head_index, head, tail_index, tail), one column a group, and for each segment
    with a head the position of the segment that its consumer had read before it, -1 if there is none or it sought.

        one consumer: read 0 to 3 · read 4 to 6 · asked for 2, a seek · read 2 to 5

    The second segment had the first before it, the last one none. Folded: head 0, tail 5.
    """
    groups = 0
    for i in range(len(starts)):
        groups += starts[i]
    folded = np.empty((5, groups), dtype=np.int64)
    previous = np.full(len(starts), -1, dtype=np.int64)
    g = -1
    at = -1
    for i in range(len(starts)):
        if starts[i]:
            g += 1
            at = -1
            folded[0, g] = NEVER
            folded[1, g] = head_index[i]
            folded[2, g] = NONE
            folded[3, g] = tail_index[i]
            folded[4, g] = NONE
        if folded[2, g] == NONE:
            folded[0, g] = min(folded[0, g], lowest_asked[i])
        if at >= 0 and lowest_asked[i] <= tail[at]:
            at = -1
            folded[4, g] = NONE
        if head[i] == NONE:
            continue
        previous[i] = at
        if folded[2, g] == NONE:
            folded[1, g] = head_index[i]
            folded[2, g] = head[i]
        folded[3, g] = tail_index[i]
        folded[4, g] = tail[i]
        at = i if tail[i] != NONE else -1
    return folded, previous
