"""Storms on Spark: a task for each, rows home in the order of their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stormproof.search.findings import SHRUNK, Finding, shrunk_row
from stormproof.search.guide import LAG
from stormproof.search.search import Trier
from stormproof.search.trial import ROWS, Task, tried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MakeRow = Callable[[Any], dict[str, Any]]
TEXTS = pa.schema([pa.field("text", pa.string(), nullable=False)])


@dataclass(frozen=True)
class OnSpark:
    """Tries storms, and shrinks findings, on a session's workers, each in a task of its own, because each takes from
    tenths of a second to minutes."""

    session: SparkSession

    @contextmanager
    def trying(self) -> Iterator[Trier]:
        """While inside: a job for each round. Spark gives its processors to the storms of the first round, and those
        that are left to the storms of the next. Rounds under way at the end are cancelled."""
        with self._jobs(LAG + 1) as jobs:
            yield lambda tasks: jobs.submit(self._tried, tasks)

    def _tried(self, tasks: list[Task]) -> pa.Table:
        return self._each([task.to_row() for task in tasks], _tried, ROWS).sort_by("number")

    def shrunk(self, findings: list[Finding]) -> list[dict[str, Any]]:
        """Rows of SHRUNK, in the order of the findings."""
        rows: list[dict[str, Any]] = self._each(findings, shrunk_row, SHRUNK).sort_by("number").to_pylist()
        return rows

    def as_done(self, make: MakeRow, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """`Each`: a job for each value, as many at once as there are processors."""
        with self._jobs(self.session.sparkContext.defaultParallelism) as jobs:
            jobs_done = [jobs.submit(self._each, [one], partial(_text, make), TEXTS) for one in values]
            for one in as_completed(jobs_done):
                yield json.loads(one.result().column("text")[0].as_py())

    @contextmanager
    def _jobs(self, at_once: int) -> Iterator[ThreadPoolExecutor]:
        """A thread waits for each; those that have not ended at the end are cancelled."""
        threads = ThreadPoolExecutor(at_once)
        try:
            yield threads
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            self.session.sparkContext.cancelAllJobs()

    def _each(self, values: list[Any], make: MakeRow, schema: pa.Schema) -> pa.Table:
        from pyspark.sql.pandas.types import from_arrow_schema

        places = self.session.range(0, len(values), 1, len(values))
        return (
            places.mapInArrow(partial(_make_rows, values, make, schema), from_arrow_schema(schema))
            .toArrow()
            .cast(schema)
        )


def _tried(row: dict[str, Any]) -> dict[str, Any]:
    return tried(Task.of_row(row))


def _text(make: MakeRow, one: Any) -> dict[str, Any]:
    return {"text": json.dumps(make(one))}


def _make_rows(
    values: list[Any], make: MakeRow, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Places among what is given in, rows out."""
    for batch in batches:
        for place in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pylist([make(values[place])], schema=schema)
