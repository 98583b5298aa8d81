"""What runs on Spark's workers: kernels chained on Arrow tables, which travel packed.

Spark shuffles rows, and each costs it a microsecond or more; a history has tens of millions. So a row here stands for a
whole table: the part of a batch that goes to one partition (`checkers.spark.payloads`). The JVM moves few rows, and
what is sorted and grouped is so in arrays, on the worker.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa

from checkers.api.plan import Kernel, Split
from checkers.history_batches import row_group_batches, table_batches
from checkers.kernels.grouping import groups, partitions, undivided
from checkers.kernels.packing import joined
from checkers.spark.payloads import Payloads

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]
"""A function from what Spark hands to a worker to tables."""


PART_ROWS = 4_096
"""How many rows go to a partition at once, if there are so many."""
ROWS_AT_ONCE = 1_000_000
"""How many rows, besides those of one batch, wait on a worker at most to be cut."""


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


def mapped(batches: Iterator[pa.RecordBatch], *, inner: Stage, kernel: Kernel) -> Iterator[pa.Table]:
    """Stage: the kernel on each table of another stage."""
    for table in inner(batches):
        yield kernel(table)


def part_of_split(table: pa.Table, *, split: Split, part: int) -> pa.Table:
    """Kernel: one of the two tables that `split` makes."""
    return split(table)[part]


def grouped(
    batches: Iterator[pa.RecordBatch], *, payloads: Payloads, keys: Sequence[str], kernel: Kernel, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Stage: the kernel on each group of each partition, which holds all rows of its groups."""
    for partition in payloads.received(batches):
        yield from map(kernel, groups(joined(list(partition), schema), keys))


def again(batches: Iterator[pa.RecordBatch], *, payloads: Payloads, schema: pa.Schema) -> Iterator[pa.Table]:
    """Stage: the tables that were kept."""
    for table in chain.from_iterable(payloads.received(batches)):
        yield joined([table], schema)


def before_shuffle(
    batches: Iterator[pa.RecordBatch],
    *,
    stage: Stage,
    payloads: Payloads,
    keys: Sequence[str],
    schema: pa.Schema,
    count: int,
) -> Iterator[pa.RecordBatch]:
    """What Spark runs before a shuffle: each table cut by partition."""
    _spare_garbage_collection()
    tables = _together(stage(batches), min(count * PART_ROWS, ROWS_AT_ONCE), schema)
    return payloads.sent(partitions(table, schema, keys, count) for table in tables)


def _together(tables: Iterator[pa.Table], rows: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of at least about `rows` rows each, because each part of each table takes time."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(one.num_rows for one in waiting) >= rows:
            yield _one_table(waiting, schema)
            waiting.clear()
    if waiting:
        yield _one_table(waiting, schema)


def _one_table(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(table.cast(schema) for table in tables).unify_dictionaries().combine_chunks()


def before_keeping(
    batches: Iterator[pa.RecordBatch], *, stage: Stage, payloads: Payloads, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """What Spark runs before it keeps a dataset."""
    _spare_garbage_collection()
    return payloads.sent(undivided(table, schema) for table in stage(batches))


def before_gather(
    batches: Iterator[pa.RecordBatch], *, stage: Stage, payloads: Payloads, schema: pa.Schema, limit: int
) -> Iterator[pa.RecordBatch]:
    """What Spark runs before a gather: at most one row more than the limit leaves a worker."""
    _spare_garbage_collection()
    return payloads.sent(undivided(table, schema) for table in _first(stage(batches), limit + 1))


def _first(tables: Iterator[pa.Table], limit: int) -> Iterator[pa.Table]:
    """At most `limit` of their rows; all tables are asked for."""
    for table in tables:
        table = table.slice(0, limit)
        limit -= table.num_rows
        yield table


def _spare_garbage_collection() -> None:
    """PySpark collects all garbage after each task; looking through what numba and Arrow imported takes 0.1 s."""
    gc.freeze()
