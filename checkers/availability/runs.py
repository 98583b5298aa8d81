"""Runs: what one client, or one queue, lived through, as stretches of successes and failures.

A stream is all operations of one kind (`f`) by one client, or all of one kind on one queue (key). Its completions in
the order of the history are runs of successes and runs of failures; a run keeps its bounds and its length, so runs of
one batch fold into longer ones, and a history shrinks to its streams before anything is shuffled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import FAIL, INVOKE, OK, TYPES, Bool, Int32, Int64, codes, run_starts, translated
from checkers.kernels.hashing import bucket_of, mixed, mixed_column
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs

COLUMNS = ("index", "time", "process", "type", "f", "key", "error")

ANSWERS = ("precondition-failed", "not-found", "message-illegal", "offset-illegal")
"""Errors by which a system that works says no; so does a `fail` that names no error."""

NEVER = int(np.iinfo(np.int64).max)

BY = ("client", "queue")
CLIENT, QUEUE = range(2)

RUNS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("by", pa.int8()),
        pa.field("f", pa.string()),
        pa.field("client", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("served", pa.bool_()),
        pa.field("count", pa.int64()),
        pa.field("began", pa.int64()),
        pa.field("first_index", pa.int64()),
        pa.field("first_ns", pa.int64()),
        pa.field("last_ns", pa.int64()),
    ]
)
"""Completions of one stream that follow one another and are all served, or all not. `began`: the earliest call among
those that were not, NEVER if no call is known here. `client` is -1 in streams of a queue, `key` null in those of a
client. A row with count 0 adds nothing but a call to the run that it lies in."""

LOOSE = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("index", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("process", pa.int64()),
        pa.field("f", pa.string()),
        pa.field("key", pa.string()),
        pa.field("call", pa.bool_()),
        pa.field("served", pa.bool_()),
    ]
)
"""Calls and completions whose partner is not in their batch."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is looked at: completions from `from_ns` on and before `until_ns`; process p is a life of p % `clients`."""

    from_ns: int
    until_ns: int
    clients: int | None
    buckets: int


@dataclass(frozen=True)
class _Rows:
    """Rows of clients in one batch, and the position of each row's partner."""

    batch: pa.Table
    index: Int64
    time: Int64
    process: Int64
    call: Bool
    served: Bool
    partner: Int64
    stretch: Int64
    """The same in rows between which no row of the history is missing."""

    @classmethod
    def of(cls, batch: pa.Table, watch: Watch) -> _Rows:
        time = batch["time"].to_numpy()
        process = batch["process"].to_numpy().astype(np.int64)
        stretch = batch["index"].to_numpy() - np.arange(batch.num_rows)
        kept = (process != NEMESIS) & (time >= watch.from_ns) & (time < watch.until_ns)
        batch = batch.filter(pa.array(kept))
        index, time, process, stretch = batch["index"].to_numpy(), time[kept], process[kept], stretch[kept]
        types = codes(batch["type"], TYPES)
        call = types == INVOKE
        served = (types == OK) | ((types == FAIL) & _is_answer(batch["error"]))
        partner = pairs(index, process.astype(np.int32), call)
        partner[(partner != NO_PARTNER) & (stretch[partner] != stretch)] = NO_PARTNER
        return cls(batch, index, time, process, call, served, partner, stretch)


def _is_answer(errors: pa.ChunkedArray) -> Bool:
    """True for these errors and for none at all."""
    named = translated(errors, dict.fromkeys(ANSWERS, 1))
    absent = pc.is_null(errors).to_numpy(zero_copy_only=False)
    return np.asarray((named == 1) | absent)


def runs_of(batch: pa.Table, *, watch: Watch) -> pa.Table:
    """Kernel: the runs of one batch."""
    rows = _Rows.of(batch, watch)
    done = np.flatnonzero(~rows.call)
    known = (rows.partner[done] != NO_PARTNER) & ~rows.served[done]
    began = np.where(known, rows.time[rows.partner[done]], NEVER)
    return _run_table(
        f=rows.batch["f"].take(pa.array(done)),
        key=rows.batch["key"].take(pa.array(done)),
        process=rows.process[done],
        served=rows.served[done],
        index=rows.index[done],
        time=rows.time[done],
        began=began,
        stretch=rows.stretch[done],
        count=1,
        watch=watch,
    )


def loose_ends(batch: pa.Table, *, watch: Watch) -> pa.Table:
    """Kernel: what `runs_of` could not pair in this batch."""
    rows = _Rows.of(batch, watch)
    alone = np.flatnonzero(rows.partner == NO_PARTNER)
    process = rows.process[alone]
    return pa.table(
        {
            "bucket": bucket_of(mixed(process), watch.buckets),
            "index": rows.index[alone],
            "time": rows.time[alone],
            "process": process,
            "f": rows.batch["f"].take(pa.array(alone)).cast(pa.string()),
            "key": rows.batch["key"].take(pa.array(alone)).cast(pa.string()),
            "call": rows.call[alone],
            "served": rows.served[alone],
        },
        schema=LOOSE,
    )


def joined_runs(loose: pa.Table, *, watch: Watch) -> pa.Table:
    """Kernel over the loose ends of a bucket of processes: the calls of what was not served, as runs of no length."""
    index, process = loose["index"].to_numpy(), loose["process"].to_numpy()
    time, call = loose["time"].to_numpy(), loose["call"].to_numpy()
    partner = pairs(index, process.astype(np.int32), call)
    failed = np.flatnonzero(~call & ~loose["served"].to_numpy() & (partner != NO_PARTNER))
    return _run_table(
        f=loose["f"].take(pa.array(failed)),
        key=loose["key"].take(pa.array(failed)),
        process=process[failed],
        served=np.zeros(len(failed), dtype=np.bool_),
        index=index[failed],
        time=time[failed],
        began=time[partner[failed]],
        stretch=np.arange(len(failed)),
        count=0,
        watch=watch,
    )


def _run_table(
    *,
    f: pa.ChunkedArray,
    key: pa.ChunkedArray,
    process: Int64,
    served: Bool,
    index: Int64,
    time: Int64,
    began: Int64,
    stretch: Int64,
    count: int,
    watch: Watch,
) -> pa.Table:
    """Completions as runs within stretches, of clients and of queues; `count` is what each adds to its run."""
    names, name = _texts(f)
    keys, place = _texts(key)
    client = process if watch.clients is None else process % watch.clients
    tables = []
    for by, who, rows in ((CLIENT, client, np.arange(len(index))), (QUEUE, place, np.flatnonzero(place >= 0))):
        order = rows[np.lexsort((index[rows], who[rows], name[rows]))]
        starts = np.flatnonzero(run_starts(name[order], who[order], served[order], stretch[order]))
        first = order[starts]
        last = order[np.append(starts[1:], len(order))[: len(starts)] - 1]
        of_client = by == CLIENT
        column = {
            "by": np.full(len(first), by, dtype=np.int8),
            "f": _taken(names, name[first]),
            "client": client[first] if of_client else np.full(len(first), -1, dtype=np.int64),
            "key": pa.nulls(len(first), pa.string()) if of_client else _taken(keys, place[first]),
            "served": served[first],
            "count": np.diff(np.append(starts, len(order))) * count,
            "began": np.minimum.reduceat(began[order], starts) if len(starts) else began[:0],
            "first_index": index[first],
            "first_ns": time[first],
            "last_ns": time[last],
        }
        tables.append(_bucketed(column, watch.buckets))
    return pa.concat_tables(tables).combine_chunks()


def _bucketed(column: Mapping[str, object], buckets: int) -> pa.Table:
    runs = pa.table(dict(column))
    hashes = mixed_column(runs["key"], mixed_column(runs["f"], mixed(runs["client"].to_numpy())))
    return runs.add_column(0, "bucket", pa.array(bucket_of(hashes, buckets))).cast(RUNS)


def _texts(column: pa.ChunkedArray) -> tuple[list[str], Int32]:
    """Distinct strings, and the position of each row's; -1 for null."""
    encoded = column.combine_chunks()
    if pa.types.is_null(encoded.type):
        return [], np.full(len(encoded), -1, dtype=np.int32)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def _taken(words: list[str], positions: Int32) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(positions))
