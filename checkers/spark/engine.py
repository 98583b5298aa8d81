"""Runs plans on Spark: the same kernels, the same result, on as many machines as there are.

Workers read the history's row groups themselves, so its path must lead to it on every machine of the cluster. One that
is in memory travels to a worker with the task.
Memory is bounded by a partition, about `checkers.buckets.BUCKET_ROWS` rows of the history, for each worker at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from checkers.buckets import bucket_count
from checkers.history_batches import Source, batch_schema, open_history
from checkers.kernels.packing import joined
from checkers.plan import Dataset, Kernel
from checkers.spark.stages import (
    PACKED_DDL,
    Stage,
    again,
    before_gather,
    before_keeping,
    before_shuffle,
    grouped,
    mapped,
    read_table,
    read_tasks,
    unpacked,
)
from harness.record.history import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW_GROUPS_A_TASK = 8
"""At most so many, where there are enough of them to keep every core busy."""


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
    """How finely to cut it where it is shuffled."""


class SparkEngine:
    """Plans on one Spark session."""

    name = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

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
        cores = self._session.sparkContext.defaultParallelism
        tasks = max(1, min(row_groups, max(2 * cores, -(-row_groups // ROW_GROUPS_A_TASK))))
        read = partial(read_tasks, path=path, columns=columns, row_groups=row_groups, tasks=tasks)
        frame = self._session.range(0, tasks, 1, tasks)
        return SparkDataset(schema, (Branch(frame, read),), bucket_count(rows))

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        of = cast(SparkDataset, source)
        branches = tuple(Branch(b.frame, partial(mapped, inner=b.stage, kernel=kernel)) for b in of.branches)
        return SparkDataset(schema, branches, of.partitions)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        of = cast(SparkDataset, source)
        frames = [
            branch.frame.mapInArrow(
                partial(before_shuffle, stage=branch.stage, keys=keys, schema=of.schema, count=of.partitions),
                PACKED_DDL,
            )
            for branch in of.branches
        ]
        shuffled = _union(frames).repartitionById(of.partitions, "partition")
        stage = partial(grouped, keys=keys, kernel=kernel, schema=of.schema)
        return SparkDataset(schema, (Branch(shuffled, stage),), of.partitions)

    def union(self, left: Dataset, right: Dataset) -> Dataset:
        first, second = cast(SparkDataset, left), cast(SparkDataset, right)
        return SparkDataset(first.schema, first.branches + second.branches, max(first.partitions, second.partitions))

    @contextmanager
    def kept(self, source: Dataset) -> Iterator[Dataset]:
        from pyspark import StorageLevel

        of = cast(SparkDataset, source)
        frames = [
            branch.frame.mapInArrow(partial(before_keeping, stage=branch.stage, schema=of.schema), PACKED_DDL)
            for branch in of.branches
        ]
        frame = _union(frames).persist(StorageLevel.DISK_ONLY)
        try:
            yield SparkDataset(of.schema, (Branch(frame, partial(again, schema=of.schema)),), of.partitions)
        finally:
            frame.unpersist()

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        of = cast(SparkDataset, source)
        frames = [
            branch.frame.mapInArrow(
                partial(before_gather, stage=branch.stage, schema=of.schema, limit=limit), PACKED_DDL
            )
            for branch in of.branches
        ]
        table = joined(list(unpacked(iter(_union(frames).toArrow().to_batches()))), of.schema)
        if table.num_rows > limit:
            raise ValueError(f"a plan gathers more than the {limit} rows it allows itself")
        return table


def _union(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole
