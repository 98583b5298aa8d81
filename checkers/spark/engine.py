"""Runs plans on Spark: the same kernels, the same result, on as many machines as there are.

Workers read the history's row groups themselves, so its path must lead to it on every machine of the cluster. One that
is in memory travels to a worker with the task.
Between two tasks tables travel in files where all workers share this machine (`checkers.spark.payloads`).
Memory is bounded by a partition, about `checkers.buckets.BUCKET_ROWS` rows of the history, for each worker at a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from checkers.api.plan import Dataset, Kernel, Matching
from checkers.buckets import bucket_count
from checkers.history_batches import Source, batch_schema, open_history
from checkers.kernels.packing import joined
from checkers.spark.payloads import InFiles, InRows, Payloads
from checkers.spark.session import shared_folder
from checkers.spark.stages import (
    Stage,
    again,
    before_gather,
    before_keeping,
    before_shuffle,
    grouped,
    mapped,
    part_of_split,
    read_table,
    read_tasks,
)
from checkers.spark.task_failures import failures_of_workers
from harness.record.history import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW_GROUPS_A_TASK = 32
"""The most row groups of a task, if there are enough of them to keep every core busy."""


@dataclass(frozen=True)
class Branch:
    """Rows of Spark, and what is still to be done to them on a worker."""

    frame: DataFrame
    stage: Stage


@dataclass(frozen=True)
class SparkDataset:
    """The union of its branches."""

    schema: pa.Schema
    branches: tuple[Branch, ...]
    partitions: int
    """The number of partitions into which it is cut when it is shuffled."""


class SparkEngine:
    """Plans on one Spark session."""

    name = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._cores = session.sparkContext.defaultParallelism
        self._folder = shared_folder(session)
        self._shuffled = self._payloads()

    def _payloads(self) -> Payloads:
        return InRows() if self._folder is None else InFiles(self._folder / secrets.token_hex(8))

    def history(self, source: Source, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        schema = batch_schema(source, columns)
        if isinstance(source, pa.Table):
            whole = partial(read_table, table=source, columns=columns)
            return SparkDataset(
                schema, (Branch(self._session.range(0, 1, 1, 1), whole),), bucket_count(source.num_rows)
            )
        path = source.resolve()
        with open_history(path) as file:
            row_groups, rows = file.num_row_groups, file.metadata.num_rows
        tasks = max(1, min(row_groups, max(2 * self._cores, -(-row_groups // ROW_GROUPS_A_TASK))))
        read = partial(read_tasks, path=path, columns=columns, row_groups=row_groups, tasks=tasks)
        frame = self._session.range(0, tasks, 1, tasks)
        return SparkDataset(schema, (Branch(frame, read),), bucket_count(rows))

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        of = cast(SparkDataset, source)
        branches = tuple(Branch(b.frame, partial(mapped, inner=b.stage, kernel=kernel)) for b in of.branches)
        return SparkDataset(schema, branches, of.partitions)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        of = cast(SparkDataset, source)
        payloads, tasks = self._shuffled.dealt(of.partitions, self._cores)
        cut = partial(before_shuffle, keys=keys, schema=of.schema, count=of.partitions)
        shuffled = _sent(of, cut, payloads).repartitionById(tasks, "task")
        stage = partial(grouped, payloads=payloads, keys=keys, kernel=kernel, schema=of.schema)
        return SparkDataset(schema, (Branch(shuffled, stage),), of.partitions)

    @contextmanager
    def completed(self, source: Dataset, matching: Matching) -> Iterator[Dataset]:
        complete = self.mapped(source, partial(part_of_split, split=matching.split, part=0), matching.schema)
        others = self.mapped(source, partial(part_of_split, split=matching.split, part=1), matching.open_schema)
        # What is complete is computed anew each time, because it could only be held on disk.
        with self.kept(self.grouped(others, matching.keys, matching.kernel, matching.schema)) as few:
            yield self.union(complete, few)

    def union(self, left: Dataset, right: Dataset) -> Dataset:
        first, second = cast(SparkDataset, left), cast(SparkDataset, right)
        return SparkDataset(first.schema, first.branches + second.branches, max(first.partitions, second.partitions))

    @contextmanager
    def kept(self, source: Dataset) -> Iterator[Dataset]:
        from pyspark import StorageLevel

        of = cast(SparkDataset, source)
        payloads = self._payloads()
        frame = _sent(of, partial(before_keeping, schema=of.schema), payloads).persist(StorageLevel.DISK_ONLY)
        stage = partial(again, payloads=payloads, schema=of.schema)
        try:
            yield SparkDataset(of.schema, (Branch(frame, stage),), of.partitions)
        finally:
            frame.unpersist()
            payloads.forgotten()

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        of = cast(SparkDataset, source)
        payloads = self._shuffled
        try:
            with failures_of_workers():
                rows = _sent(of, partial(before_gather, schema=of.schema, limit=limit), payloads).toArrow()
            tables = chain.from_iterable(payloads.received(iter(rows.to_batches())))
            table = joined(list(tables), of.schema)
        finally:
            payloads.forgotten()
        if table.num_rows > limit:
            raise ValueError(f"a plan gathers more than the {limit} rows it allows itself")
        return table


def _sent(of: SparkDataset, before: Callable[..., Iterator[pa.RecordBatch]], payloads: Payloads) -> DataFrame:
    """All its rows as payloads. `before`: what is still to be done to the tables of each branch."""
    frames = [
        branch.frame.mapInArrow(partial(before, stage=branch.stage, payloads=payloads), payloads.ddl)
        for branch in of.branches
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole
