"""The columns of a history, and the exception for tables that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from harness.record.history.message import shortened

COLUMNS = ("index", "time", "process", "type", "f", "key", "value", "error", "node")

OPERATION_TYPES = ("invoke", "ok", "fail", "info")

NAMES = pa.dictionary(pa.int32(), pa.string())
"""The Arrow type of columns with few distinct strings."""


class MalformedHistory(Exception):
    """Input that is not a history, which is no statement about the system that it came from.

    `position` is the row, counted from 0; None where the whole is meant (its columns, or the file itself).
    In a file of text `line` and `column` are where that row begins, counted from 1, and `byte` as well, from 0.
    """

    def __init__(
        self,
        position: int | None,
        reason: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
        byte: int | None = None,
    ) -> None:
        reason = shortened(reason)
        where = "" if position is None else f"row {position}: " if line is None else f"line {line}, row {position}: "
        behind = "" if byte is None else f" (byte {byte}, column {column})"
        super().__init__(f"{path or 'malformed history'}: {where}{reason}{behind}")
        self.path = path
        self.position = position
        self.line = line
        self.column = column
        self.byte = byte
        self.reason = reason

    def in_words(self, words: Callable[[str], str]) -> MalformedHistory:
        """The same with its reason in other words."""
        return MalformedHistory(
            self.position, words(self.reason), path=self.path, line=self.line, column=self.column, byte=self.byte
        )

    def of(self, path: Path) -> MalformedHistory:
        """The same of a file by another name, such as the one that the user knows."""
        return MalformedHistory(
            self.position, self.reason, path=path, line=self.line, column=self.column, byte=self.byte
        )


def history_schema(value_type: pa.DataType) -> pa.Schema:
    """The schema of a history whose workload has values of this struct type."""
    return pa.schema(
        [
            pa.field("index", pa.int64(), nullable=False),
            pa.field("time", pa.int64(), nullable=False),
            pa.field("process", pa.int32(), nullable=False),
            pa.field("type", NAMES, nullable=False),
            pa.field("f", NAMES, nullable=False),
            pa.field("key", pa.string()),
            pa.field("value", value_type),
            pa.field("error", pa.string()),
            pa.field("node", pa.string()),
        ]
    )


def check_columns(schema: pa.Schema, *, path: Path | None = None) -> None:
    """Raises MalformedHistory unless all columns are there with types that mean the same.

    Integer widths and encodings of strings may differ (other programs write other ones); the order of
    columns and further columns do not matter.
    """
    known = set(schema.names)
    for expected in history_schema(pa.struct([])):
        if expected.name not in known:
            raise MalformedHistory(
                None,
                f"column {expected.name!r} ({'struct' if expected.name == 'value' else expected.type}) is missing; "
                f"there are {', '.join(schema.names) or 'none'}",
                path=path,
            )
        came = schema.field(expected.name).type
        if not _means_the_same(came, expected.type):
            raise MalformedHistory(
                None,
                f"column {expected.name!r} must be {_expected(expected)}, it is {came}; write it with that type",
                path=path,
            )


def conform(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with exactly the types of `history_schema` in the columns that are there."""
    expected = history_schema(pa.struct([]))
    columns, fields = [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name not in COLUMNS:
            continue
        target = field.type if field.name == "value" else expected.field(field.name).type
        if column.type == target:
            columns.append(column)
        elif target == NAMES:
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            columns.append(pc.dictionary_encode(plain.cast(pa.string())))
        else:
            columns.append(column.cast(target))
        fields.append(pa.field(field.name, target))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _expected(field: pa.Field) -> str:
    if field.name == "value":
        return "a struct (the workload's own type)"
    return "a string, plain or as a dictionary" if field.type == NAMES else str(field.type)


def _means_the_same(came: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(came):
        came = came.value_type
    if pa.types.is_dictionary(expected):
        expected = expected.value_type
    if pa.types.is_string(expected):
        # A column without a single value has the null type in some writers.
        return bool(pa.types.is_string(came) or pa.types.is_large_string(came) or pa.types.is_null(came))
    if pa.types.is_integer(expected):
        return bool(pa.types.is_signed_integer(came))
    return bool(pa.types.is_struct(came) or pa.types.is_null(came))
