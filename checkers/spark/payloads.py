"""How tables travel from one task to the next: in Spark's rows, or in files that these rows name.

The JVM copies what is in a row four times, from a worker to disk and to the next worker. Where all workers share this
machine its rows only say which part of which file goes to which partition; files are read where they lie, by mapping
them. On a cluster a worker cannot read what another one wrote, so there tables are in the rows.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from checkers.kernels.grouping import Cut

ALIGNED_BYTES = 64
"""Arrow's buffers begin at multiples of this."""

TASKS_A_CORE = 4
"""How many tasks a core gets, which are enough for cores to end at about the same time."""
PARTITIONS_A_TASK = 16


class LostFile(Exception):
    """A file that was written for a task is not there any more; Spark does not have it written again."""


class Payloads(Protocol):
    """Both ends of the way; the same value on each."""

    @property
    def ddl(self) -> str:
        """Columns of Spark's rows. `task` is one of them: the number of the task that receives it."""

    def dealt(self, partitions: int, cores: int) -> tuple[Payloads, int]:
        """(payloads for tables that are cut into so many partitions, how many tasks receive them)."""

    def sent(self, tables: Iterator[Cut]) -> Iterator[pa.RecordBatch]:
        """Rows that carry all parts of packed tables to their partitions."""

    def received(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.Table]]:
        """The tables that they carry, still packed, one partition after the other."""

    def forgotten(self) -> None:
        """Frees what is held once no row will be received any more."""


@dataclass(frozen=True)
class InRows:
    """Payloads in which each part is bytes in a row."""

    ddl: str = "task int, payload binary"

    def dealt(self, partitions: int, cores: int) -> tuple[InRows, int]:
        """A task for each partition: all that a task receives is in memory at once."""
        return self, partitions

    def sent(self, tables: Iterator[Cut]) -> Iterator[pa.RecordBatch]:
        for table in filter(_has_rows, tables):
            # All are in one batch, because the JVM is slow with each.
            sink = pa.BufferOutputStream()
            ends = [0]
            for _, part in table.parts():
                _write(part, sink)
                ends.append(sink.tell())
            offsets = pa.py_buffer(np.array(ends, dtype=np.int32))
            payload = pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, sink.getvalue()])
            yield pa.record_batch({"task": pa.array(table.numbers, pa.int32()), "payload": payload})

    def received(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.Table]]:
        yield (_read(row.as_buffer()) for batch in batches for row in batch.column("payload"))

    def forgotten(self) -> None:
        """They go with the rows."""


@dataclass(frozen=True)
class InFiles:
    """Payloads for which each task writes a file of its own into a folder of this machine; a row names some rows of a
    table in it."""

    folder: Path
    partitions_a_task: int = 1
    ddl: str = "task int, partition int, file string, position bigint, first bigint, rows bigint"

    def dealt(self, partitions: int, cores: int) -> tuple[InFiles, int]:
        """As few tasks as keep every core busy: they take their partitions one after the other."""
        together = min(max(partitions // (TASKS_A_CORE * cores), 1), PARTITIONS_A_TASK)
        return replace(self, partitions_a_task=together), -(-partitions // together)

    def sent(self, tables: Iterator[Cut]) -> Iterator[pa.RecordBatch]:
        self.folder.mkdir(exist_ok=True)
        name = secrets.token_hex(16)
        with pa.OSFile(str(self.folder / name), "wb") as file:
            for table in filter(_has_rows, tables):
                file.write(bytes(-file.tell() % ALIGNED_BYTES))
                position = file.tell()
                _write(table.rows, file)
                yield self._named(table, name, position)

    def _named(self, table: Cut, file: str, position: int) -> pa.RecordBatch:
        count = len(table.numbers)
        partition = np.array(table.numbers, dtype=np.int32)
        return pa.record_batch(
            {
                "task": partition // np.int32(self.partitions_a_task),
                "partition": partition,
                "file": pa.repeat(file, count),
                "position": pa.repeat(position, count),
                "first": np.array(table.bounds[:-1], dtype=np.int64),
                "rows": np.diff(table.bounds),
            }
        )

    def received(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.Table]]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        rows.sort(key=itemgetter("partition"))
        for _, of_one in groupby(rows, itemgetter("partition")):
            yield map(self._read, of_one)

    def _read(self, row: Mapping[str, Any]) -> pa.Table:
        path = self.folder / row["file"]
        try:
            file = pa.memory_map(str(path))
        except FileNotFoundError:
            raise LostFile(
                f"{path} is gone, in which one task had left rows for another: run the check again, with TMPDIR where "
                "nothing removes files that are in use"
            ) from None
        with file:
            file.seek(row["position"])
            return _read(file).slice(row["first"], row["rows"])

    def forgotten(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _has_rows(table: Cut) -> bool:
    return bool(table.numbers)


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _read(source: pa.Buffer | pa.NativeFile) -> pa.Table:
    with pa.ipc.open_stream(source) as stream:
        return stream.read_all()
