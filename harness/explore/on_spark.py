"""Storms on Spark: a task for each, rows home in the order of their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harness.explore.findings import SHRUNK, Finding, shrunk_row
from harness.explore.row import ROWS, Task, tried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Made = Callable[[Any], dict[str, Any]]
TEXTS = pa.schema([pa.field("text", pa.string(), nullable=False)])


@dataclass(frozen=True)
class OnSpark:
    """Storms tried, and findings shrunk, on a session's workers: one a task, for each takes from tenths of a second to
    minutes."""

    session: SparkSession

    def tried(self, tasks: list[Task]) -> pa.Table:
        """`Trier`."""
        return self._each([task.to_row() for task in tasks], _tried, ROWS).sort_by("number")

    def shrunk(self, findings: list[Finding]) -> list[dict[str, Any]]:
        """Rows of SHRUNK, in the order of the findings."""
        rows: list[dict[str, Any]] = self._each(findings, shrunk_row, SHRUNK).sort_by("number").to_pylist()
        return rows

    def as_done(self, make: Made, given: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """`Each`: a job for each value, as many at once as there are processors."""
        context = self.session.sparkContext
        threads = ThreadPoolExecutor(context.defaultParallelism)
        jobs = [threads.submit(self._each, [one], partial(_text, make), TEXTS) for one in given]
        try:
            for job in as_completed(jobs):
                yield json.loads(job.result().column("text")[0].as_py())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            context.cancelAllJobs()

    def _each(self, given: list[Any], make: Made, schema: pa.Schema) -> pa.Table:
        from pyspark.sql.pandas.types import from_arrow_schema

        places = self.session.range(0, len(given), 1, len(given))
        return places.mapInArrow(partial(_made, given, make, schema), from_arrow_schema(schema)).toArrow().cast(schema)


def _tried(row: dict[str, Any]) -> dict[str, Any]:
    return tried(Task.of_row(row))


def _text(make: Made, one: Any) -> dict[str, Any]:
    return {"text": json.dumps(make(one))}


def _made(
    given: list[Any], make: Made, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Places among what is given in, rows out."""
    for batch in batches:
        for place in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pylist([make(given[place])], schema=schema)
