"""Runs plans in this process, on Arrow and numpy: for quick loops and small histories.

It claims the same results as `checkers.spark.engine`, from the same kernels. They run on threads, because they do not
need the interpreter most of the time; the order of results never depends on which is done first. Rows that are grouped
are held in memory at once, packed. For histories that do not fit there is Spark.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from threading import Event
from typing import NamedTuple, TypeVar, cast

import pyarrow as pa

from checkers.api.plan import Dataset, Kernel, Matching
from checkers.buckets import bucket_count
from checkers.history_batches import (
    Source,
    batch_schema,
    history_rows,
    open_history,
    row_group_batches,
    short_batches,
    table_batches,
)
from checkers.kernels.grouping import groups, partitions
from checkers.kernels.packing import joined, packed
from harness.record.history import COLUMNS

T = TypeVar("T")
Task = Callable[[], Iterator[pa.Table]]
"""A piece of a dataset, independent of all others."""

ROW_GROUPS_A_TASK = 4

TOO_MANY = "a plan gathers more than the {} rows it allows itself"

AHEAD = 2
"""How many tasks each thread may have done before their results are asked for."""


@dataclass(frozen=True)
class InProcessDataset:
    """Rows that are computed anew each time they are asked for."""

    schema: pa.Schema
    tasks: Callable[[], Iterator[Task]]
    partitions: int
    """The number of partitions into which it is cut when it is grouped."""

    @property
    def is_small(self) -> bool:
        """Whether it is not cut at all. Packing such rows, or starting threads for them, takes longer than judging
        them."""
        return self.partitions == 1


@dataclass(frozen=True)
class InProcessEngine:
    """Runs plans on threads, without Java."""

    name: str = "inprocess"
    threads: int = os.cpu_count() or 1

    def history(self, source: Source, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        if isinstance(source, pa.Table):
            in_memory = partial(table_batches, source, columns)
            return InProcessDataset(
                batch_schema(source, columns), lambda: iter((in_memory,)), bucket_count(source.num_rows)
            )
        short = short_batches(source, columns)
        if short is not None:
            schema, batches = short
            return InProcessDataset(schema, lambda: iter((partial(iter, batches),)), 1)

        def tasks() -> Iterator[Task]:
            with open_history(source) as file:
                metadata = file.metadata
            for first in range(0, metadata.num_row_groups, ROW_GROUPS_A_TASK):
                mine = range(first, min(first + ROW_GROUPS_A_TASK, metadata.num_row_groups))
                yield partial(row_group_batches, source, mine, columns, metadata)

        return InProcessDataset(batch_schema(source, columns), tasks, bucket_count(history_rows(source)))

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        of = cast(InProcessDataset, source)
        return InProcessDataset(schema, lambda: (partial(_mapped, task, kernel) for task in of.tasks()), of.partitions)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        of = cast(InProcessDataset, source)
        if of.is_small:
            whole = partial(_all_grouped, of.tasks, of.schema, keys, kernel)
            return InProcessDataset(schema, lambda: iter([whole]), of.partitions)

        def cut(task: Task) -> list[tuple[int, pa.Table]]:
            tables = (partitions(table, of.schema, keys, of.partitions) for table in task())
            return [part for table in tables for part in table.parts()]

        def tasks() -> Iterator[Task]:
            parts: list[list[pa.Table]] = [[] for _ in range(of.partitions)]
            for cuts in self._done(partial(cut, task) for task in of.tasks()):
                for number, part in cuts:
                    parts[number].append(part)
            return (partial(_grouped, part, of.schema, keys, kernel) for part in parts)

        return InProcessDataset(schema, tasks, of.partitions)

    @contextmanager
    def completed(self, source: Dataset, matching: Matching) -> Iterator[Dataset]:
        of = cast(InProcessDataset, source)

        def tasks() -> Iterator[Task]:
            rest: list[_Rest] = []
            for task in of.tasks():
                rest.append(_Rest([], Event()))
                yield partial(_completed, task, matching, rest[-1])
            # Tasks are begun in this order, so those that this one waits for are under way.
            yield partial(_of_rest, rest, matching)

        yield InProcessDataset(matching.schema, tasks, of.partitions)

    def union(self, left: Dataset, right: Dataset) -> Dataset:
        first, second = cast(InProcessDataset, left), cast(InProcessDataset, right)

        def tasks() -> Iterator[Task]:
            yield from first.tasks()
            yield from second.tasks()

        return InProcessDataset(first.schema, tasks, max(first.partitions, second.partitions))

    @contextmanager
    def kept(self, source: Dataset) -> Iterator[Dataset]:
        of = cast(InProcessDataset, source)
        if of.is_small:
            whole = _joined_here(of.tasks, of.schema)
            yield InProcessDataset(of.schema, lambda: iter([lambda: iter([whole])]), of.partitions)
            return
        held = list(self._done(partial(_all_packed, task, of.schema) for task in of.tasks()))
        yield InProcessDataset(
            of.schema, lambda: (partial(_unpacked, tables, of.schema) for tables in held), of.partitions
        )

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        of = cast(InProcessDataset, source)
        if of.is_small:
            whole = _joined_here(of.tasks, of.schema)
            if whole.num_rows > limit:
                raise ValueError(TOO_MANY.format(limit))
            return whole
        kept: list[pa.Table] = []
        rows = 0
        for tables in self._done(partial(_all, task) for task in of.tasks()):
            for table in tables:
                rows += table.num_rows
                if rows > limit:
                    raise ValueError(TOO_MANY.format(limit))
                kept.append(packed(table, of.schema))
        return joined(kept, of.schema)

    def _done(self, calls: Iterator[Callable[[], T]]) -> Iterator[T]:
        """Their results, in order."""
        begin = list(islice(calls, 2))
        if len(begin) < 2:
            # Starting a thread for a single piece takes longer than judging a small history.
            yield from (call() for call in begin)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            running: deque[Future[T]] = deque()
            try:
                for call in chain(begin, calls):
                    # The context of searches is passed on to the thread.
                    running.append(pool.submit(copy_context().run, call))
                    if len(running) > AHEAD * self.threads:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)


def _joined_here(tasks: Callable[[], Iterator[Task]], schema: pa.Schema) -> pa.Table:
    """All rows, in one chunk."""
    found = (table for task in tasks() for table in task() if table.num_rows)
    tables = [table if table.schema == schema else table.cast(schema) for table in found]
    if not tables:
        return schema.empty_table()
    if len(tables) == 1 and all(column.num_chunks == 1 for column in tables[0].columns):
        return tables[0]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _all_grouped(
    tasks: Callable[[], Iterator[Task]], schema: pa.Schema, keys: tuple[str, ...], kernel: Kernel
) -> Iterator[pa.Table]:
    return map(kernel, groups(_joined_here(tasks, schema), keys))


def _all(task: Task) -> list[pa.Table]:
    return list(task())


def _all_packed(task: Task, schema: pa.Schema) -> list[pa.Table]:
    return [packed(table, schema) for table in task() if table.num_rows]


def _unpacked(tables: list[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    return (joined([table], schema) for table in tables)


def _mapped(task: Task, kernel: Kernel) -> Iterator[pa.Table]:
    return map(kernel, task())


class _Rest(NamedTuple):
    """What a task leaves to the last one, which runs after all of them."""

    tables: list[pa.Table]
    """The tables that are left, packed."""
    is_whole: Event


def _completed(task: Task, matching: Matching, rest: _Rest) -> Iterator[pa.Table]:
    """Runs the whole task at once, because one that failed halfway would leave the last task waiting."""
    whole = []
    try:
        for table in task():
            complete, others = matching.split(table)
            rest.tables.append(packed(others, matching.open_schema))
            whole.append(complete)
    finally:
        rest.is_whole.set()
    return iter(whole)


def _of_rest(rest: list[_Rest], matching: Matching) -> Iterator[pa.Table]:
    for one in rest:
        one.is_whole.wait()
    others = joined([table for one in rest for table in one.tables], matching.open_schema)
    return map(matching.kernel, groups(others, matching.keys))


def _grouped(parts: list[pa.Table], schema: pa.Schema, keys: tuple[str, ...], kernel: Kernel) -> Iterator[pa.Table]:
    whole = joined(parts, schema)
    parts.clear()  # The list is still held where all of them were cut.
    return map(kernel, groups(whole, keys))
