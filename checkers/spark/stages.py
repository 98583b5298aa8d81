"""What runs on Spark's workers: kernels chained on Arrow tables, which travel through the JVM packed.

Spark shuffles rows, and each costs it a microsecond or more; a history has tens of millions. So a row here is a
whole table: the part of a batch that goes to one partition, as bytes. The JVM moves few rows, and what is
sorted and grouped is so in arrays, on the worker.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from checkers.history_batches import row_group_batches, table_batches
from checkers.kernels.grouping import groups, partitions
from checkers.kernels.packing import joined, packed
from checkers.plan import Kernel

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]
"""From what Spark hands to a worker to tables."""

PACKED = pa.schema([pa.field("partition", pa.int32()), pa.field("payload", pa.binary())])
PACKED_DDL = "partition int, payload binary"


def read_tasks(
    batches: Iterator[pa.RecordBatch], *, path: Path, columns: Sequence[str], row_groups: int, tasks: int
) -> Iterator[pa.Table]:
    """Stage: rows are numbers of tasks; task i of n reads the i-th n-th of the row groups."""
    for batch in batches:
        for task in batch.column(0).to_pylist():
            mine = range(task * row_groups // tasks, (task + 1) * row_groups // tasks)
            yield from row_group_batches(path, mine, columns)


def read_table(batches: Iterator[pa.RecordBatch], *, table: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Stage: for each row, the rows of a table in memory."""
    for batch in batches:
        for _ in range(batch.num_rows):
            yield from table_batches(table, columns)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The tables that travelled, still packed."""
    for batch in batches:
        for payload in batch.column("payload"):
            with pa.ipc.open_stream(payload.as_buffer()) as stream:
                yield stream.read_all()


def mapped(batches: Iterator[pa.RecordBatch], *, inner: Stage, kernel: Kernel) -> Iterator[pa.Table]:
    """Stage: the kernel on each table of another stage."""
    for table in inner(batches):
        yield kernel(table)


def grouped(
    batches: Iterator[pa.RecordBatch], *, keys: Sequence[str], kernel: Kernel, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Stage: the kernel on each group of a partition, which holds all rows of its groups."""
    for group in groups(joined(list(unpacked(batches)), schema), keys):
        yield kernel(group)


def before_shuffle(
    batches: Iterator[pa.RecordBatch], *, stage: Stage, keys: Sequence[str], schema: pa.Schema, count: int
) -> Iterator[pa.RecordBatch]:
    """What Spark runs before a shuffle: each table cut by partition."""
    _spare_garbage_collection()
    for table in stage(batches):
        yield _packed_rows(partitions(table, schema, keys, count))


def before_gather(
    batches: Iterator[pa.RecordBatch], *, stage: Stage, schema: pa.Schema, limit: int
) -> Iterator[pa.RecordBatch]:
    """What Spark runs before a gather: at most one row more than the limit leaves a worker."""
    _spare_garbage_collection()
    rows = 0
    for table in stage(batches):
        if table.num_rows and rows <= limit:
            table = table.slice(0, limit + 1 - rows)
            rows += table.num_rows
            yield _packed_rows([(0, packed(table, schema))])


def before_keeping(batches: Iterator[pa.RecordBatch], *, stage: Stage, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """What Spark runs before it keeps a dataset."""
    _spare_garbage_collection()
    for table in stage(batches):
        if table.num_rows:
            yield _packed_rows([(0, packed(table, schema))])


def again(batches: Iterator[pa.RecordBatch], *, schema: pa.Schema) -> Iterator[pa.Table]:
    """Stage: the tables that were kept."""
    for table in unpacked(batches):
        yield joined([table], schema)


def _spare_garbage_collection() -> None:
    """PySpark collects all garbage after each task; looking through what numba and Arrow imported takes 0.1 s."""
    gc.freeze()


def _packed_rows(parts: Iterable[tuple[int, pa.Table]]) -> pa.RecordBatch:
    """One row for each (partition, table), all in one batch: the JVM takes its time for each."""
    sink = pa.BufferOutputStream()
    numbers, ends = [], [0]
    for number, table in parts:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        numbers.append(number)
        ends.append(sink.tell())
    offsets = pa.py_buffer(np.array(ends, dtype=np.int32))
    payload = pa.Array.from_buffers(pa.binary(), len(numbers), [None, offsets, sink.getvalue()])
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32()), payload], schema=PACKED)
