"""A foreign history becomes one of ours: in one pass, in bounded memory, refusing what is no history.

Claims of what it writes: it passes `harness.history.read_history`, and says the same. Processes get numbers of their
own, a new one after each operation of unknown outcome, for the old one may still be running; whatever has no number
as process (`:nemesis`) is the nemesis. Operations without a time get their place in the order recorded, which
decides also where times of neighbours run back by less than a millisecond; by more, it is no history.

A value that is no map is the field `value`; a cas `[a b]` is `expected` a and `value` b; a sequence is the field
`values` where there is one, a map from accounts to amounts the field `balances`, one from keys to values the field
`reads`, a sequence of `[f key value]` the field `txn`, the value of a read being a list or not. Where the struct is but
`json`, any value is kept as JSON text. In a history without `:key` the first value that a client asks with tells: is it
a pair where a single one belongs, it is taken as lifted by its key, `[k v]`, and so are all that follow.
A failed or indefinite operation may carry its error in place of a value.

Memory is bounded by one batch, and some words for each process that ever took part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import HarnessError
from harness.foreign import edn, json_text, textual
from harness.foreign.source import BrokenText, Pieces, Row
from harness.history.schema import NAMES, OPERATION_TYPES, MalformedHistory, history_schema
from harness.operation import NEMESIS

BATCH_ROWS = 65_536
SNIFFED_BYTES = 65_536
CLOCK_SLIP_NS = 1_000_000
"""Jepsen's workers take the time first and their place in the history then, so neighbours may have changed places; it
is a slip only as far as it is small (a hundredth) against the time itself."""

_CODES = {name: code for code, name in enumerate(OPERATION_TYPES)}
_INVOKE, _OK, _FAIL, _INFO = range(4)
_FIRST = re.compile(rb"(?:[\s,]|;[^\n]*\n)*(?:[\[(](?:[\s,]|;[^\n]*\n)*)?(?:(\{\s*\"|\[?\s*\Z)|([{\])#]))")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What clients of a history did, and the struct that their values become."""

    value_type: pa.StructType
    functions: tuple[str, ...] = ()
    """The f that clients may use; none for any."""


def convert(path: Path, parquet: Path, shape: Shape) -> int:
    """Write the history as Parquet; returns the number of its rows.

    Raises MalformedHistory with row, line and reason, HarnessError where a file cannot be read or written.
    """
    partial = parquet.with_name(parquet.name + ".partial")
    try:
        read = _reader(path)
        pieces = Pieces(path)
        batches = _Batches(path, shape)
        with pq.ParquetWriter(partial, batches.schema, compression="zstd", version="2.6") as writer:
            try:
                for line, row in read(pieces):
                    batches.add(line, row)
                    if batches.full:
                        writer.write_batch(batches.take())
            except BrokenText as broken:
                raise MalformedHistory(batches.rows, broken.reason, path=path, line=broken.line) from None
            writer.write_batch(batches.take())
        partial.replace(parquet)
    except OSError as error:
        raise HarnessError(f"history {path} cannot be converted: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return batches.rows


def _reader(path: Path) -> Callable[[Pieces], Iterator[tuple[int, Row]]]:
    """Seen from the first characters that are no comment."""
    with path.open("rb") as file:
        first = _FIRST.match(file.read(SNIFFED_BYTES))
    if first is None:
        return textual.rows
    return json_text.rows if first[1] is not None and first[1].startswith(b"{") else edn.rows


class _Batches:
    """Rows as columns, a batch at a time, and what must be remembered of each process."""

    def __init__(self, path: Path, shape: Shape) -> None:
        self.schema = history_schema(shape.value_type)
        self.rows = 0
        self._path = path
        self._functions = frozenset(shape.functions)
        self._values = (_JsonValues if shape.value_type.names == ["json"] else _Values)(shape.value_type)
        self._numbers: dict[int, int] = {}
        self._next_number = 0
        self._open: dict[int, tuple[str, str | None]] = {}
        self._time = 0
        self._has_times = False
        self._f_codes: dict[str, int] = {}
        self._clear()

    @property
    def full(self) -> bool:
        return len(self._lines) >= BATCH_ROWS

    def add(self, line: int, row: Row) -> None:
        """Raises MalformedHistory."""
        try:
            self._add(row)
        except _Malformed as malformed:
            raise MalformedHistory(self.rows, str(malformed), path=self._path, line=line) from None
        self._lines.append(line)
        self.rows += 1

    def take(self) -> pa.RecordBatch:
        """The rows added since the last one was taken."""
        count = len(self._lines)
        first = self.rows - count
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(range(first, self.rows), pa.int64()),
                self._column("time", self._times, pa.int64()),
                self._column("process", self._processes, pa.int32()),
                pa.DictionaryArray.from_arrays(pa.array(self._types, NAMES.index_type), pa.array(OPERATION_TYPES)),
                pa.DictionaryArray.from_arrays(
                    pa.array(self._fs, NAMES.index_type), pa.array(list(self._f_codes), pa.string())
                ),
                pa.array(self._keys, pa.string()),
                self._structs(),
                pa.array(self._errors, pa.string()),
                pa.array(self._nodes, pa.string()),
            ],
            schema=self.schema,
        )
        self._clear()
        return batch

    def _clear(self) -> None:
        self._lines: list[int] = []
        self._times: list[int] = []
        self._processes: list[int] = []
        self._types: list[int] = []
        self._fs: list[int] = []
        self._keys: list[str | None] = []
        self._fields: list[tuple[Any, ...]] = []
        self._errors: list[str | None] = []
        self._nodes: list[str | None] = []

    def _add(self, row: Row) -> None:
        name = row.get("type")
        kind = _CODES.get(name, -1) if isinstance(name, str) else -1
        if kind < 0:
            raise _Malformed(f"type must be one of {', '.join(OPERATION_TYPES)}, it is {edn.written(name)}")
        f = row.get("f")
        if not isinstance(f, str):
            raise _Malformed(f"f must be a keyword, it is {edn.written(f)}")
        time = self._time_of(row)
        process = row.get("process")
        value, error, key = row.get("value"), row.get("error"), row.get("key")
        if process.__class__ is not int:
            if not isinstance(process, str):
                raise _Malformed(f"process must be a number or a keyword, it is {edn.written(process)}")
            number, value, key, error = NEMESIS, None, None, error
            fields = self._values.none
        else:
            assert isinstance(process, int)
            if kind > _OK and isinstance(value, str) and not self._values.may_be(f, value):
                error, value = error or value, None
            if self._values.lifted is None and value is not None and kind != _INVOKE:
                self._values.lifted = False
            if key is None and self._values.lifted is not False and value is not None:
                key, value = self._values.split(f, value)
            key = key if key is None or key.__class__ is str else _text(key)
            number, key = self._client(process, kind, f, key)
            fields = self._values.fields(f, value)
        self._times.append(time)
        self._processes.append(number)
        self._types.append(kind)
        self._fs.append(self._f_codes.setdefault(f, len(self._f_codes)))
        self._keys.append(key)
        self._fields.append(fields)
        self._errors.append(None if error is None else _text(error))
        node = row.get("node")
        self._nodes.append(None if node is None else _text(node))

    def _time_of(self, row: Row) -> int:
        time = row.get("time")
        if time is None:
            return self._time if self._has_times else self.rows
        if time.__class__ is not int:
            raise _Malformed(f"time must be a number of nanoseconds, it is {edn.written(time)}")
        if time < self._time:
            if self._time - time > min(CLOCK_SLIP_NS, self._time // 100):
                raise _Malformed(f"time runs back: {time} ns after {self._time} ns")
            return self._time
        self._time, self._has_times = time, True
        return int(time)

    def _client(self, process: int, kind: int, f: str, key: str | None) -> tuple[int, str | None]:
        """Its number, and the key of its operation."""
        if kind == _INVOKE:
            if process in self._open:
                raise _Malformed(f"process {process} invokes {f} while its {self._open[process][0]} is still open")
            if process < 0:
                raise _Malformed(f"process must be at least 0, it is {process}")
            if self._functions and f not in self._functions:
                raise _Malformed(f"f must be one of {', '.join(sorted(self._functions))}, it is {f}")
            self._open[process] = (f, key)
            number = self._numbers.get(process)
            if number is None:
                number = self._numbers[process] = self._next_number
                self._next_number += 1
            return number, key
        invoked = self._open.pop(process, None)
        if invoked is None:
            raise _Malformed(f"process {process} has {OPERATION_TYPES[kind]} of {f} without an open invocation")
        if invoked[0] != f:
            raise _Malformed(f"process {process} completes {f}, but what it has open is {invoked[0]}")
        if key is not None and invoked[1] != key:
            raise _Malformed(f"process {process} completes {f} on key {key}, but invoked it on {invoked[1]}")
        number = self._numbers.pop(process) if kind == _INFO else self._numbers[process]
        return number, invoked[1]

    def _column(self, name: str, cells: list[Any], kind: pa.DataType) -> pa.Array:
        try:
            return pa.array(cells, kind)
        except (pa.ArrowException, OverflowError):
            for at, cell in enumerate(cells):
                try:
                    pa.array([cell], kind)
                except (pa.ArrowException, OverflowError):
                    raise MalformedHistory(
                        self.rows - len(self._lines) + at,
                        f"{name} must be {kind}, it is {edn.written(cell)}",
                        path=self._path,
                        line=self._lines[at],
                    ) from None
            raise

    def _structs(self) -> pa.StructArray:
        kind = self._values.value_type
        columns = zip(*self._fields, strict=True) if self._fields else [()] * kind.num_fields
        return pa.StructArray.from_arrays(
            [
                self._column(kind.field(number).name, list(cells), kind.field(number).type)
                for number, cells in enumerate(columns)
            ],
            fields=list(kind),
        )


class _Values:
    """Values as they were recorded, into the fields of a struct."""

    def __init__(self, value_type: pa.StructType) -> None:
        self.value_type = value_type
        names = [value_type.field(number).name for number in range(value_type.num_fields)]
        self.none: tuple[Any, ...] = (None,) * len(names)
        self._position = {name: number for number, name in enumerate(names)}
        self._single = self._position.get("value")
        self._swaps = self._single is not None and "expected" in self._position
        self._before = self.none[: self._single or 0]
        self._after = self.none[(self._single or 0) + 1 :]
        kind = None if self._single is None else value_type.field(self._single).type
        self._is_text = kind is not None and pa.types.is_string(kind)
        self._sequence = self._position.get("values")
        self._balances = self._position.get("balances")
        self._txn = self._position.get("txn")
        self._reads = self._position.get("reads")
        self._is_sequence = kind is not None and pa.types.is_list(kind)
        self._has_floats = "float" in str(value_type) or "double" in str(value_type)
        self.lifted: bool | None = None
        """Whether values come as `[k v]`; None while nothing has told."""

    def may_be(self, f: str, value: str) -> bool:
        return self._is_text and not isinstance(value, edn.Keyword)

    def split(self, f: str, value: Any) -> tuple[Any, Any]:
        """Key and value of an operation that has a value and no key beside it. Raises _Malformed."""
        is_pair = value.__class__ in (tuple, list) and len(value) == 2
        if self.lifted is None:
            self.lifted = is_pair and self._is_lifted(f, value)
        if not self.lifted:
            return None, value
        if not is_pair:
            raise _Malformed(f"value must be [key value], as in the operations before, it is {edn.written(value)}")
        return value[0], value[1]

    def fields(self, f: str, value: Any) -> tuple[Any, ...]:
        """Raises _Malformed."""
        if value is None:
            return self.none
        if value.__class__ is int and self._single is not None and f != "cas":
            return (*self._before, value, *self._after)
        if not self._has_floats and _holds_float(value):
            # Arrow would cut it off without a word.
            raise _Malformed(f"value must be made of {self.value_type}, it is {edn.written(value)}")
        cells: list[Any] = [None] * len(self.none)
        if isinstance(value, dict) and self._balances is not None and not value.keys() <= self._position.keys():
            cells[self._balances] = [{"account": _number(name), "amount": amount} for name, amount in value.items()]
        elif isinstance(value, dict) and self._reads is not None and not value.keys() <= self._position.keys():
            cells[self._reads] = [{"key": _text(name), "value": cell} for name, cell in value.items()]
        elif isinstance(value, dict):
            for name, cell in value.items():
                if name not in self._position:
                    known = ", ".join(self._position)
                    raise _Malformed(f"value has a field {edn.written(name)}; known are {known}")
                cells[self._position[name]] = cell
        elif self._txn is not None and isinstance(value, tuple | list):
            cells[self._txn] = [_micro_operation(part) for part in value]
        elif self._sequence is not None and isinstance(value, tuple | list):
            cells[self._sequence] = value
        elif self._single is None:
            known = ", ".join(self._position)
            raise _Malformed(f"value must be a map with {known}, it is {edn.written(value)}")
        elif f == "cas" and self._swaps:
            if not isinstance(value, tuple | list) or len(value) != 2:
                raise _Malformed(f"the value of a cas must be [expected new], it is {edn.written(value)}")
            cells[self._position["expected"]], cells[self._single] = value
        else:
            cells[self._single] = value
        return tuple(cells)

    def _is_lifted(self, f: str, value: Any) -> bool:
        """Whether a pair is a key and what belongs to it, rather than a value of its own."""
        if f == "cas" and self._swaps:
            return value[1] is None or isinstance(value[1], tuple | list)
        if self._txn is not None:
            return not isinstance(value[0], tuple | list | dict)
        return not self._is_sequence or value[1] is None or isinstance(value[1], tuple | list)


class _JsonValues(_Values):
    """Any values, as JSON."""

    def may_be(self, f: str, value: str) -> bool:
        return f != "cas" and not isinstance(value, edn.Keyword)

    def fields(self, f: str, value: Any) -> tuple[Any, ...]:
        """Raises _Malformed."""
        if f == "cas" and value is not None and not (isinstance(value, tuple | list) and len(value) == 2):
            raise _Malformed(f"the value of a cas must be [expected new], it is {edn.written(value)}")
        try:
            return (json.dumps(value),)
        except TypeError:
            raise _Malformed(f"value has a key that is no JSON: {edn.written(value)}") from None

    def _is_lifted(self, f: str, value: Any) -> bool:
        if f == "cas":
            return value[1] is None or isinstance(value[1], tuple | list)
        return not isinstance(value[0], tuple | list)


class _Malformed(Exception):
    """An operation that does not fit those before it, or that is none."""


def _holds_float(value: Any) -> bool:
    kind = value.__class__
    if kind is dict:
        value = value.values()
    elif kind is not tuple and kind is not list:
        return kind is float
    return any(cell.__class__ is not int and _holds_float(cell) for cell in value)


def _micro_operation(part: Any) -> dict[str, Any]:
    """Raises _Malformed."""
    if isinstance(part, dict):
        return part
    if not isinstance(part, tuple | list) or len(part) != 3 or not isinstance(part[0], str):
        raise _Malformed(f"a part of a transaction must be [f key value], it is {edn.written(part)}")
    f, key, value = part
    several = isinstance(value, tuple | list)
    return {"f": str(f), "key": _text(key), "value": None if several else value, "values": value if several else None}


def _number(name: Any) -> Any:
    """Names in JSON are always text."""
    try:
        return int(name)
    except (TypeError, ValueError):
        raise _Malformed(f"an account must be a number, it is {edn.written(name)}") from None


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else edn.written(value)
