"""Reads histories, refusing what is none.

`read_history` goes over the whole file once and validates it; after that, batches are read again as often
as wanted, so nothing of the size of the history is ever held in memory unless `table` is asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import HarnessError
from harness.operation import Operation
from harness.record.history.parquet import write_parquet
from harness.record.history.schema import COLUMNS, MalformedHistory, check_columns, conform
from harness.record.history.stream import StreamTail, stream_batches, stream_schema
from harness.record.history.validation import VALIDATED, validate

BATCH_ROWS = 65_536
_STREAM = b"\xff\xff\xff\xff"
"""What an Arrow stream begins with."""


@dataclass(frozen=True, kw_only=True)
class History:
    """A history on disk that was found well-formed."""

    path: Path
    value_type: pa.DataType
    operations: int
    """Rows: invocations and completions."""
    complete: bool
    """False if the run was killed while it wrote: these are the operations that were whole."""
    dropped_bytes: int = 0
    """The torn tail behind them."""

    def batches(self, columns: Sequence[str] = COLUMNS) -> Iterator[pa.RecordBatch]:
        """These columns, in the order recorded, a bounded number of rows at a time."""
        return (conform(batch) for batch in _batches(self.path, columns, StreamTail()))

    def table(self, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """All rows in memory at once."""
        batches = list(self.batches(columns))
        return pa.Table.from_batches(batches).unify_dictionaries() if batches else self._empty(columns)

    def __iter__(self) -> Iterator[Operation]:
        for batch in self.batches():
            for row in batch.to_pylist():
                yield Operation(**row)

    def _empty(self, columns: Sequence[str]) -> pa.Table:
        schema = _schema(self.path)
        return pa.schema([schema.field(name) for name in columns]).empty_table()


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """What was saved of a run that was killed."""

    parquet: Path
    operations: int
    dropped_bytes: int
    """The torn tail; 0 if the stream ended between two batches."""

    def __str__(self) -> str:
        torn = f", {self.dropped_bytes} torn bytes dropped" if self.dropped_bytes else ""
        return f"{self.operations} operations recovered{torn}"


def read_history(path: Path) -> History:
    """Open and validate a Parquet history or an Arrow stream, torn or whole.

    Raises MalformedHistory with the row and the reason, HarnessError if the file cannot be read at all.
    """
    try:
        schema = _schema(path)
        check_columns(schema, path=path)
        tail = StreamTail()
        rows = sum(len(batch) for batch in validate(_batches(path, VALIDATED, tail), path=path))
    except OSError as error:
        raise HarnessError(f"history {path} cannot be read: {error}") from error
    return History(
        path=path,
        value_type=schema.field("value").type,
        operations=rows,
        complete=not _is_stream(path) or tail.complete,
        dropped_bytes=tail.dropped_bytes,
    )


def require_history(history: Path | pa.Table) -> None:
    """Raises as `read_history` does, also of rows in memory."""
    if isinstance(history, Path):
        read_history(history)
        return
    check_columns(history.schema)
    for _ in validate(history.to_batches()):
        pass


def close_torn(path: Path, parquet: Path | None = None) -> Recovered:
    """Turn the stream that a killed run left into the Parquet that closing would have written, at `parquet`
    or beside it.

    Raises MalformedHistory if not even the schema is whole, HarnessError if Parquet cannot be written.
    The stream is left in place.
    """
    parquet = parquet or path.with_suffix(".parquet")
    try:
        tail = write_parquet(path, parquet)
    except OSError as error:
        raise HarnessError(f"history {parquet} cannot be written: {error.strerror or error}") from error
    return Recovered(parquet=parquet, operations=tail.operations, dropped_bytes=tail.dropped_bytes)


def _is_stream(path: Path) -> bool:
    """Seen from its first bytes; of one that was torn within them, from its name."""
    with path.open("rb") as file:
        return file.read(len(_STREAM)) == _STREAM or path.suffix == ".arrows"


def _schema(path: Path) -> pa.Schema:
    if _is_stream(path):
        return stream_schema(path)
    try:
        return pq.read_schema(path)
    except pa.ArrowInvalid as error:
        raise MalformedHistory(
            None, f"not a Parquet file, or a part of one ({error}); of a killed run check the .arrows file", path=path
        ) from error


def _batches(path: Path, columns: Sequence[str], tail: StreamTail) -> Iterator[pa.RecordBatch]:
    if _is_stream(path):
        for batch in stream_batches(path, tail):
            yield batch.select(list(columns))
        return
    with pq.ParquetFile(path, memory_map=True) as file:
        yield from file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns))
