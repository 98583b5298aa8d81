"""Reads the rows of a closed history, or of another table of a run, in pieces, for engines.

Columns of few distinct strings arrive dictionary-encoded, so that kernels translate each distinct string
once and never touch strings row by row. What a row means is not looked at here; `harness.history` has
validated it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.history import COLUMNS, MalformedHistory

BATCH_ROWS = 262_144
"""Rows handed to a kernel at once: bounds its memory; the more, the less is left to pair across batches."""

STRINGS = ("type", "f", "key", "error", "node", "event")


def open_history(path: Path, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Raises MalformedHistory if it is not a Parquet file, OSError if it cannot be read. `metadata`: its footer."""
    try:
        metadata = metadata or pq.read_metadata(path, memory_map=True)
        names = metadata.schema.to_arrow_schema().names
        strings = [name for name in STRINGS if name in names]
        return pq.ParquetFile(path, memory_map=True, read_dictionary=strings, metadata=metadata)
    except pa.ArrowInvalid as error:
        raise MalformedHistory(None, f"not a Parquet file, or a part of one ({error})", path=path) from error


def history_rows(path: Path) -> int:
    """Number of rows, from the file's footer."""
    with open_history(path) as file:
        return int(file.metadata.num_rows)


def batch_schema(path: Path, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of the batches that `row_group_batches` yields. Raises MalformedHistory if a column is missing."""
    with open_history(path) as file:
        schema = file.schema_arrow
    wanted = tuple(columns or COLUMNS)
    missing = [name for name in wanted if name not in schema.names]
    if missing:
        raise MalformedHistory(
            None, f"column {missing[0]!r} is missing; there are: {', '.join(schema.names)}", path=path
        )
    return pa.schema([schema.field(name) for name in wanted])


def row_group_batches(
    path: Path, row_groups: Sequence[int], columns: Sequence[str], metadata: pq.FileMetaData | None = None
) -> Iterator[pa.Table]:
    """These row groups, in order, as tables of one chunk and at most BATCH_ROWS rows."""
    wanted = {"row_groups": list(row_groups), "columns": list(columns)}
    with open_history(path, metadata) as file:
        # Engines read in parallel already.
        for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=False, **wanted):
            yield pa.Table.from_batches([batch]).select(list(columns))
