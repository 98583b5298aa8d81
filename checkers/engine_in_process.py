"""Runs plans in this process, on Arrow and numpy: for quick loops and small histories.

Claims the same results as `checkers.spark.engine`, from the same kernels. Rows that are grouped are held
in memory at once; for histories that do not fit there is Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa

from checkers.history_batches import batch_schema, open_history, row_group_batches
from checkers.kernels.grouping import groups
from checkers.plan import Dataset, Kernel


@dataclass(frozen=True)
class InProcessDataset:
    """Rows that are computed anew each time they are asked for."""

    schema: pa.Schema
    tables: Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True)
class InProcessEngine:
    """One thread, no Java."""

    name: str = "inprocess"

    def history(self, path: Path, columns: tuple[str, ...] | None = None) -> Dataset:
        schema = batch_schema(path, columns)

        def tables() -> Iterator[pa.Table]:
            with open_history(path) as file:
                row_groups = range(file.num_row_groups)
            return row_group_batches(path, row_groups, schema.names)

        return InProcessDataset(schema, tables)

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        tables = _tables(source)
        return InProcessDataset(schema, lambda: (kernel(table) for table in tables()))

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        tables = _tables(source)

        def results() -> Iterator[pa.Table]:
            whole = joined(tables(), source.schema)
            return (kernel(group) for group in groups(whole, keys))

        return InProcessDataset(schema, results)

    def union(self, left: Dataset, right: Dataset) -> Dataset:
        first, second = _tables(left), _tables(right)

        def tables() -> Iterator[pa.Table]:
            yield from first()
            yield from second()

        return InProcessDataset(left.schema, tables)

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        kept: list[pa.Table] = []
        rows = 0
        for table in _tables(source)():
            rows += table.num_rows
            if rows > limit:
                raise ValueError(f"a plan gathers more than the {limit} rows it allows itself")
            kept.append(table)
        return joined(iter(kept), source.schema)


def joined(tables: Iterator[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows as one table of one chunk."""
    parts = [table.cast(schema) for table in tables if table.num_rows]
    if not parts:
        return schema.empty_table()
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _tables(source: Dataset) -> Callable[[], Iterator[pa.Table]]:
    return cast(InProcessDataset, source).tables
