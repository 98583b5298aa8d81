"""Writes a history while the test runs, so that killing the test loses next to nothing.

Claims: an operation appended is durable after at most 100 ms of real time, also when no other follows, and
at most 1,000 operations are not durable yet: `append` waits when the disk is slower than that. Rows depend on
what is appended alone; how they are cut into batches on disk depends on real time and means nothing.
Closing writes Parquet, whose bytes depend on the rows alone.

One background thread owns the file; conversion to Arrow happens there, too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from harness.errors import HarnessError
from harness.operation import Operation
from harness.record.history.parquet import sync_directory, write_parquet
from harness.record.history.schema import NAMES, OPERATION_TYPES, history_schema

FLUSH_OPERATIONS = 1_000
FLUSH_INTERVAL_S = 0.08
"""Less than the 100 ms promised, which leaves time for writing and fsync."""

_TYPE_CODES = {name: code for code, name in enumerate(OPERATION_TYPES)}
_TYPES = pa.array(OPERATION_TYPES, pa.string())


class HistoryWriter:
    """Appends operations to an Arrow stream; `close` turns it into Parquet beside it."""

    def __init__(self, path: Path, value_type: pa.DataType) -> None:
        """Creates the file. Raises HarnessError if it cannot be made or is there already."""
        self.path = path
        self.parquet = path.with_suffix(".parquet")
        self._encoder = _Encoder(value_type)
        try:
            self._file = path.open("xb")
            self._stream = pa.ipc.new_stream(
                self._file, self._encoder.schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
            )
            self._sync()
            sync_directory(path.parent)
        except OSError as error:
            raise HarnessError(f"history cannot be created at {path}: {error.strerror or error}") from error
        self._changed = threading.Condition()
        self._waiting: list[Operation] = []
        self._appended = 0
        self._durable = 0
        self._wanted = 0
        self._closing = False
        self._failure: HarnessError | None = None
        self._thread = threading.Thread(target=self._run, name="history-writer", daemon=True)
        self._thread.start()

    @property
    def operations(self) -> int:
        """How many operations were appended."""
        return self._appended

    def append(self, operation: Operation) -> int:
        """Take over one operation; returns its index. Raises HarnessError once writing has failed."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            index = self._appended
            self._appended = index + 1
            self._waiting.append(operation)
            undurable = index + 1 - self._durable
            if undurable == FLUSH_OPERATIONS // 2 or undurable >= FLUSH_OPERATIONS:
                self._changed.notify_all()
            while undurable >= FLUSH_OPERATIONS and self._failure is None:
                self._changed.wait()
                undurable = index + 1 - self._durable
        return index

    def flush(self) -> None:
        """Return once everything appended is durable. Raises HarnessError."""
        with self._changed:
            target = self._appended
            self._wanted = max(self._wanted, target)
            self._changed.notify_all()
            while self._durable < target and self._failure is None:
                self._changed.wait()
            if self._failure is not None:
                raise self._failure

    def close(self) -> Path:
        """Make everything durable, write Parquet, drop the stream; returns the path of the Parquet file.

        Raises HarnessError; the stream stays then, readable as far as it was durable, and closing may be tried again.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        try:
            if not self._file.closed:
                self._stream.close()
                self._sync()
                self._file.close()
            if self.path.exists():
                write_parquet(self.path, self.parquet)
                self.path.unlink()
        except OSError as error:
            raise self._cannot_write(error) from error
        return self.parquet

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._changed:
                self._changed.wait_for(self._due, timeout=FLUSH_INTERVAL_S)
                batch, self._waiting = self._waiting, []
                closing = self._closing
            try:
                self._write(batch)
                failure = None
            except OSError as error:
                failure = self._cannot_write(error)
            except Exception as error:  # noqa: BLE001 - must reach the callers of append, which would wait for ever otherwise
                failure = HarnessError(
                    f"history: operations from row {self._durable} on do not fit: {error} ({type(error).__name__})"
                )
            with self._changed:
                self._durable += len(batch) if failure is None else 0
                self._failure = failure
                self._changed.notify_all()
            if failure is not None:
                return

    def _due(self) -> bool:
        waiting = len(self._waiting)
        return self._closing or waiting >= FLUSH_OPERATIONS // 2 or (waiting > 0 and self._wanted > self._durable)

    def _write(self, operations: Sequence[Operation]) -> None:
        if operations:
            self._stream.write_batch(self._encoder.batch(operations, first_index=self._durable))
            self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _cannot_write(self, error: OSError) -> HarnessError:
        return HarnessError(
            f"history cannot be written to {self.path}: {error.strerror or error}; "
            f"the first {self._durable} operations are safe there, make room and `check` them"
        )


def table_of(operations: Sequence[Operation], value_type: pa.DataType) -> pa.Table:
    """The rows that a closed history of these operations holds, in memory. Raises ValueError for a value with fields
    that the type lacks."""
    encoder = _Encoder(value_type)
    batches = [encoder.batch(operations, first_index=0)] if operations else []
    return pa.Table.from_batches(batches, schema=encoder.schema)


class _Encoder:
    """Operations to record batches. Names of f get their codes in the order in which they first appear."""

    def __init__(self, value_type: pa.DataType) -> None:
        self.schema = history_schema(value_type)
        self._value_type = value_type
        self._fields = frozenset(value_type.field(i).name for i in range(value_type.num_fields))
        self._f_codes: dict[str, int] = {}

    def batch(self, operations: Sequence[Operation], *, first_index: int) -> pa.RecordBatch:
        process, types, f, value, key, time, error, node, _ = zip(*operations, strict=True)
        codes = self._f_codes
        f_codes = [codes.setdefault(name, len(codes)) for name in f]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(np.arange(first_index, first_index + len(operations))),
                pa.array(time, pa.int64()),
                pa.array(process, pa.int32()),
                pa.DictionaryArray.from_arrays(pa.array([_TYPE_CODES[t] for t in types], NAMES.index_type), _TYPES),
                pa.DictionaryArray.from_arrays(pa.array(f_codes, NAMES.index_type), pa.array(codes, pa.string())),
                pa.array(key, pa.string()),
                pa.array([self._value(v) for v in value], self._value_type),
                pa.array(error, pa.string()),
                pa.array(node, pa.string()),
            ],
            schema=self.schema,
        )

    def _value(self, value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        # Arrow drops fields it does not know without a word, and a checker would then miss them.
        if value is None:
            return None
        if not value.keys() <= self._fields:
            unknown = sorted(value.keys() - self._fields)
            raise ValueError(f"value has fields {unknown} that the workload's type {self._value_type} lacks")
        return value if type(value) is dict else dict(value)
