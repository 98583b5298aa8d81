"""Storms tried on Spark: a task of Spark for each storm, rows home in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harness.explore.row import ROWS, Task, tried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkTrier:
    """`Trier` on a Spark session."""

    def __init__(self, session: SparkSession) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        self._session = session
        self._schema = from_arrow_schema(ROWS)

    def __call__(self, tasks: list[Task]) -> pa.Table:
        rows = [task.to_row() for task in tasks]
        # One storm a partition: storms last from tenths of a second to several seconds.
        places = self._session.range(0, len(rows), 1, len(rows))
        return places.mapInArrow(partial(_tried, rows), self._schema).toArrow().cast(ROWS).sort_by("number")


def _tried(rows: list[dict[str, Any]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Places among the rows of TASKS in, rows of ROWS out."""
    for batch in batches:
        for place in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pylist([tried(Task.of_row(rows[place]))], schema=ROWS)
