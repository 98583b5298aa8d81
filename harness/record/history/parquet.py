"""An Arrow stream of operations becomes Parquet, with bytes that depend on the rows alone.

Rows are cut into row groups of a fixed size, whatever batches they came in, and names are encoded anew in
each group in the order of their first use in it: neither real time nor the flushing leaves a trace.
Memory is bounded by one row group.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.record.history.schema import NAMES
from harness.record.history.stream import StreamTail, stream_batches, stream_schema

ROW_GROUP_ROWS = 65_536
"""Small enough that Spark can split a history of a few hundred thousand operations, large enough to compress."""


def write_parquet(stream: Path, parquet: Path) -> StreamTail:
    """Write the whole batches of the stream, atomically and durably; says how much of the stream that was.

    Raises OSError, and leaves nothing behind then.
    """
    schema = stream_schema(stream)
    tail = StreamTail()
    partial = parquet.with_name(parquet.name + ".partial")
    try:
        with partial.open("wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd", version="2.6") as writer:
                for group in _row_groups(stream_batches(stream, tail), schema):
                    writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(parquet)
    finally:
        partial.unlink(missing_ok=True)
    sync_directory(parquet.parent)
    return tail


@contextmanager
def parquet_file(parquet: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A file that is there whole or not at all, for what can be made again. Raises OSError."""
    partial = parquet.with_name(parquet.name + ".partial")
    try:
        with pq.ParquetWriter(partial, schema, compression="zstd", version="2.6") as writer:
            yield writer
        partial.replace(parquet)
    finally:
        partial.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make names in the directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        offset = 0
        while rows + len(batch) - offset >= ROW_GROUP_ROWS:
            part = batch.slice(offset, ROW_GROUP_ROWS - rows)
            yield _canonical([*held, part], schema)
            held, rows, offset = [], 0, offset + len(part)
        if offset < len(batch):
            held.append(batch.slice(offset))
            rows += len(batch) - offset
    if held:
        yield _canonical(held, schema)


def _canonical(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    columns = []
    for position, field in enumerate(schema):
        if field.type == NAMES:
            plain = [batch.column(position).cast(pa.string()) for batch in batches]
            columns.append(pc.dictionary_encode(pa.concat_arrays(plain)))
        else:
            columns.append(pa.concat_arrays([batch.column(position) for batch in batches]))
    return pa.Table.from_arrays(columns, schema=schema)
