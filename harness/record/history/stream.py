"""Reads an Arrow stream that may end anywhere: whole batches are kept, a torn tail is dropped.

The writer makes a stream durable batch by batch, so whatever follows the last whole batch was never
promised to anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from harness.record.history.schema import MalformedHistory

_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@dataclass
class StreamTail:
    """How reading ended; filled in while the batches are read."""

    operations: int = 0
    dropped_bytes: int = 0
    """Bytes behind the last whole batch that are not the mark of a proper end."""
    complete: bool = False
    """The stream was closed properly."""


def stream_schema(path: Path) -> pa.Schema:
    """Raises MalformedHistory if not even the schema is whole."""
    with pa.memory_map(str(path)) as source:
        return _open(source, path).schema


def stream_batches(path: Path, tail: StreamTail) -> Iterator[pa.RecordBatch]:
    """All whole batches in order."""
    with pa.memory_map(str(path)) as source:
        reader = _open(source, path)
        size, end = source.size(), source.tell()
        while True:
            try:
                batch = reader.read_next_batch()
                # A file cut within a batch may have room for the metadata and not for the body.
                batch.validate()
            except StopIteration:
                break
            except (pa.ArrowInvalid, OSError):
                break
            end = source.tell()
            tail.operations += len(batch)
            yield batch
        source.seek(end)
        rest = source.read(size - end)
        tail.complete = rest == _END_OF_STREAM
        tail.dropped_bytes = 0 if tail.complete else size - end


def _open(source: pa.MemoryMappedFile, path: Path) -> pa.RecordBatchStreamReader:
    try:
        return pa.ipc.open_stream(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise MalformedHistory(
            None, "the stream ends within its schema: nothing was recorded, run the test again", path=path
        ) from error
