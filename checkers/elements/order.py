"""The order in which a queue gives out what was put in.

An element is sent before another one if its enqueue was acked before the other's began; where the promise is one of
producers, only if the same process sent both. Elements that may have been enqueued more than once have no place in
this order, nor has one behind an enqueue of unknown outcome.

What is judged is the first time that an element comes out. At-least-once goes back to an earlier element and comes on
from there: the same elements again, in any number, are no breach. An element is late, `out-of-order`, if one that was
sent after it was delivered before any delivery of it began; or if both came in one list, the later one ahead, and no
other delivery of the element may have been earlier. Deliveries that overlap say nothing of order.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.elements.rows import KEY, NEVER, element_groups
from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int64, run_starts, whole, witness_order
from checkers.kernels.hashing import bucket_of, mixed, mixed_column
from harness.compiled import compiled

ENQUEUE, DEQUEUE, DRAIN = 0, 1, 3
"""Numbers of functions in the rows of a queue."""

ANYBODY = -1
"""The producer, where order is promised across all of them."""


class Order(Enum):
    """Among which elements of a queue order is promised."""

    NONE = "none"
    PRODUCER = "producer"
    KEY = "key"


SENT = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", KEY),
        pa.field("producer", pa.int32()),
        pa.field("element", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("shown_from", pa.int64()),
        pa.field("shown_start", pa.int64()),
        pa.field("shown_end", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("alone", pa.bool_()),
    ]
)
"""One row an element that was delivered: its enqueue, and its first delivery, the one that ended first. `shown_from` is
the earliest begin of any delivery; `alone` is false where another one began before the first had ended."""


def sent_elements(table: pa.Table, *, order: Order, buckets: int) -> pa.Table:
    """Kernel over all operations on a bucket of elements: those that have a place in the order."""
    groups = element_groups(table)
    named = groups.element != NONE
    enqueues = (groups.f == ENQUEUE) & named & (groups.type != FAIL)
    deliveries = np.flatnonzero(np.isin(groups.f, (DEQUEUE, DRAIN)) & (groups.type == OK) & named)
    deliveries = deliveries[np.lexsort((groups.position[deliveries], groups.end[deliveries], groups.group[deliveries]))]
    firsts = deliveries[run_starts(groups.group[deliveries])]
    first = np.full(groups.count, -1, dtype=np.int64)
    first[groups.group[firsts]] = firsts
    enqueue = np.full(groups.count, -1, dtype=np.int64)
    enqueue[groups.group[enqueues]] = np.flatnonzero(enqueues)
    shown_from = groups.smallest(_rows(groups.group, deliveries), groups.start)

    among = np.flatnonzero((groups.sizes(enqueues) == 1) & (first >= 0))
    first, enqueue = first[among], enqueue[among]
    first_end = np.full(groups.count, -1, dtype=np.int64)
    first_end[among] = groups.end[first]
    ended = first_end[groups.group[deliveries]]
    others = deliveries[(groups.start[deliveries] < ended) & (groups.end[deliveries] != ended)]
    alone = groups.sizes(_rows(groups.group, others))[among] == 0

    producer = groups.process[enqueue] if order is Order.PRODUCER else np.full(len(among), ANYBODY)
    name, unnamed = groups.key[enqueue], groups.names.index(None)
    key = pa.DictionaryArray.from_arrays(
        pa.array(name, pa.int32(), mask=name == unnamed), pa.array(groups.names[:unnamed], pa.string())
    )
    columns = (
        bucket_of(mixed(producer, mixed_column(key)), buckets),
        key,
        producer.astype(np.int32),
        groups.element[enqueue],
        groups.start[enqueue],
        groups.end[enqueue],
        shown_from[among],
        groups.start[first],
        groups.end[first],
        groups.position[first].astype(np.int64),
        alone,
    )
    return pa.Table.from_arrays(
        [column if isinstance(column, pa.Array) else pa.array(column) for column in columns], schema=SENT
    )


def late_elements(sent: pa.Table) -> pa.Table:
    """Kernel over the elements of a bucket of queues or producers: those that another one overtook."""
    encoded = whole(sent["key"])
    names = encoded.dictionary.to_pylist()
    key = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    start, end, shown_from, shown_start, shown_end, position, element, producer, alone = (
        sent[name].to_numpy()
        for name in (
            *("start", "end", "shown_from", "shown_start", "shown_end", "position"),
            *("element", "producer", "alone"),
        )
    )
    group = np.unique(np.stack((key, producer.astype(np.int64))), axis=1, return_inverse=True)[1].reshape(-1)
    by_start = np.lexsort((start, group))
    by_place = np.lexsort((position, shown_end, group))
    place = np.empty(len(group), dtype=np.int64)
    place[by_place] = np.arange(len(group))
    before = shown_before(group, start, end, shown_from, shown_end, place, by_start)
    ahead = ahead_in_list(group, start, end, shown_end, alone, by_place)
    other = np.where(before >= 0, before, ahead)

    late = np.flatnonzero(other >= 0)
    by = other[late]
    witnesses = (
        *(start[late], end[late], shown_start[late], shown_end[late]),
        *(start[by], np.where(end[by] == NEVER, start[by], end[by]), shown_start[by], shown_end[by]),
    )
    chosen = witness_order(*witnesses, ties=(element[late],))[:EXAMPLES] if len(late) else late
    examples = []
    for i in chosen.tolist():
        row, overtaking = int(late[i]), int(by[i])
        whose = f" of {names[key[row]]}" if key[row] >= 0 else ""
        sender = "" if producer[row] == ANYBODY else f" by process {producer[row]}"
        examples.append(
            Example(
                key=names[key[row]] if key[row] >= 0 else None,
                operations=tuple(sorted({int(witness[i]) for witness in witnesses})),
                tie=(int(element[row]),),
                because=(
                    f"element {element[row]}{whose} was enqueued{sender} before {element[overtaking]}, "
                    f"but {element[overtaking]} was delivered before it"
                ),
                details={"element": int(element[row]), "overtaken_by": int(element[overtaking])},
            )
        )
    findings = Findings()
    findings.add("out-of-order", len(late), examples)
    return findings.table()


@compiled
def shown_before(
    group: Int64, start: Int64, end: Int64, shown_from: Int64, shown_end: Int64, place: Int64, by_start: Int64
) -> Int64:
    """For each row the foremost of its group that began after its end, if that was shown before it; else -1."""
    count = len(group)
    result = np.full(count, -1, dtype=np.int64)
    foremost = np.empty(count, dtype=np.int64)
    for i in range(count - 1, -1, -1):
        row = by_start[i]
        foremost[i] = row
        if i + 1 < count and group[by_start[i + 1]] == group[row] and place[foremost[i + 1]] < place[row]:
            foremost[i] = foremost[i + 1]
    for i in range(count):
        row = by_start[i]
        low, high = i + 1, count
        while low < high:
            middle = (low + high) // 2
            other = by_start[middle]
            if group[other] == group[row] and start[other] <= end[row]:
                low = middle + 1
            else:
                high = middle
        if low < count and group[by_start[low]] == group[row] and shown_end[foremost[low]] < shown_from[row]:
            result[row] = foremost[low]
    return result


@compiled
def ahead_in_list(group: Int64, start: Int64, end: Int64, shown_end: Int64, alone: Bool, by_place: Int64) -> Int64:
    """For each row the one that began last of those ahead of it in its list, if after its end; else -1."""
    result = np.full(len(group), -1, dtype=np.int64)
    latest = -1
    for i in range(len(group)):
        row = by_place[i]
        if latest >= 0 and (group[latest] != group[row] or shown_end[latest] != shown_end[row]):
            latest = -1
        if latest >= 0 and alone[row] and start[latest] > end[row]:
            result[row] = latest
        if latest < 0 or start[row] > start[latest]:
            latest = row
    return result


def _rows(group: Int64, positions: Int64) -> Bool:
    chosen = np.zeros(len(group), dtype=np.bool_)
    chosen[positions] = True
    return chosen
