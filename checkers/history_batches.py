"""Reads the rows of a closed history, or of another table of a run, in pieces, for engines.

Such a table lies in a Parquet file, or it is in memory because nobody wrote it; then whole columns are handed out.

Columns of few distinct strings arrive dictionary-encoded, so that kernels translate each distinct string
once and never touch strings row by row. What a row means is not looked at here; `harness.record.history` has
validated it before.

A name in `columns` is that of a column ("value") or of a member of its values ("value.messages.offset"; lists on the
way have no name). Of a column whose members are named, only these are decoded; where it has none of them, it is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from harness.record.history import MalformedHistory

BATCH_ROWS = 262_144
"""Rows handed to a kernel at once: bounds its memory; the more, the less is left to pair across batches."""
SHORT_ROWS = 10_000
"""A history of at most so many rows is read while a plan is made: opening its file costs more than what it holds."""

Source: TypeAlias = Path | pa.Table
"""Where the rows of a table are."""

STRINGS = ("type", "f", "key", "error", "node", "event")


def open_history(path: Path, metadata: pq.FileMetaData | None = None, words: Sequence[str] = STRINGS) -> pq.ParquetFile:
    """Raises MalformedHistory if it is not a Parquet file, OSError if it cannot be read. `metadata`: its footer;
    `words`: paths of what arrives dictionary-encoded."""
    metadata = metadata or _footer(path)
    try:
        paths = {metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)}
        strings = [name for name in words if name in paths]
        return pq.ParquetFile(path, memory_map=True, read_dictionary=strings, metadata=metadata)
    except pa.ArrowInvalid as error:
        raise _no_parquet(path, error) from error


def _footer(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path, memory_map=True)
    except pa.ArrowInvalid as error:
        raise _no_parquet(path, error) from error


def _no_parquet(path: Path, error: pa.ArrowInvalid) -> MalformedHistory:
    return MalformedHistory(None, f"not a Parquet file, or a part of one ({error})", path=path)


def history_rows(source: Source) -> int:
    """Number of rows; of a file, from its footer."""
    if isinstance(source, pa.Table):
        return int(source.num_rows)
    return int(_footer(source).num_rows)


def nulls_in(source: Source, column: str) -> int | None:
    """How many rows have none of it; of a file, as its footer says, or None where that says nothing."""
    if isinstance(source, pa.Table):
        return int(source[column].null_count)
    with open_history(source) as file:
        metadata, names = file.metadata, file.schema_arrow.names
        if column not in names:
            return 0
        place = next(leaf for leaf in range(metadata.num_columns) if metadata.schema.column(leaf).path == column)
        found = [metadata.row_group(group).column(place).statistics for group in range(metadata.num_row_groups)]
    if any(one is None or not one.has_null_count for one in found):
        return None
    return int(sum(one.null_count for one in found))


def batch_schema(source: Source, columns: Sequence[str]) -> pa.Schema:
    """The schema of the batches of these columns. Raises MalformedHistory if a column is missing."""
    if isinstance(source, pa.Table):
        _require_columns(source.column_names, columns)
        return _encoded(source.slice(0, 0), columns).schema
    with open_history(source) as file:
        return _schema(source, file, columns)


def _schema(path: Path, file: pq.ParquetFile, columns: Sequence[str]) -> pa.Schema:
    _require_columns(file.schema_arrow.names, columns, path)
    return _complete(file.read_row_groups([], columns=_leaves(file, columns)), columns).schema


def short_batches(path: Path, columns: Sequence[str]) -> tuple[pa.Schema, list[pa.Table]] | None:
    """The schema and the batches of a file of one row group that is short; None for any other."""
    with open_history(path) as file:
        if file.metadata.num_row_groups != 1 or file.metadata.num_rows > SHORT_ROWS:
            return None
        return _schema(path, file, columns), list(_batches(path, file, [0], columns))


def _require_columns(there: Sequence[str], columns: Sequence[str], path: Path | None = None) -> None:
    missing = [name for name in _tops(columns) if name not in there]
    if missing:
        raise MalformedHistory(None, f"column {missing[0]!r} is missing; there are: {', '.join(there)}", path=path)


def batches(source: Source, columns: Sequence[str]) -> Iterator[pa.Table]:
    """All rows, in order, as tables of one chunk and at most BATCH_ROWS rows."""
    if isinstance(source, pa.Table):
        yield from table_batches(source, columns)
        return
    with open_history(source) as file:
        row_groups = range(file.metadata.num_row_groups)
    yield from row_group_batches(source, row_groups, columns)


def table_batches(table: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The same of a table in memory."""
    rows = _encoded(table, columns)
    if rows.num_rows <= BATCH_ROWS:
        yield rows
        return
    for first in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(first, BATCH_ROWS)


def encoded(table: pa.Table) -> pa.Table:
    """A table in memory so that reading it often costs little."""
    return _encoded(table, table.column_names)


def _encoded(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """These columns, each of one chunk, and of few distinct strings as a dictionary."""
    rows = _complete(table, columns)
    if any(column.num_chunks > 1 for column in rows.columns):
        rows = rows.unify_dictionaries().combine_chunks()
    for place, field in enumerate(rows.schema):
        if field.name in STRINGS and pa.types.is_string(field.type):
            rows = rows.set_column(place, field.name, rows.column(place).dictionary_encode())
    return rows


def row_group_batches(
    path: Path, row_groups: Sequence[int], columns: Sequence[str], metadata: pq.FileMetaData | None = None
) -> Iterator[pa.Table]:
    """These row groups, in order, as tables of one chunk and at most BATCH_ROWS rows."""
    with open_history(path, metadata) as file:
        yield from _batches(path, file, row_groups, columns)


def _batches(path: Path, file: pq.ParquetFile, row_groups: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
    leaves = _leaves(file, columns)
    within = _words_within(leaves)
    largest = max((file.metadata.row_group(group).num_rows for group in row_groups), default=0)
    if within and largest <= BATCH_ROWS:
        yield from _with_words(path, file, row_groups, columns, within)
        return
    # Engines read in parallel already.
    batches = file.iter_batches(batch_size=BATCH_ROWS, row_groups=list(row_groups), columns=leaves, use_threads=False)
    for batch in batches:
        yield _complete(pa.Table.from_batches([batch]), columns)


def _words_within(leaves: Sequence[str]) -> list[str]:
    """Paths of strings of few kinds that are members of what lists hold."""
    inside = [leaf for leaf in leaves if "." in leaf and ".key_value." not in leaf]
    return [leaf for leaf in inside if leaf.rpartition(".")[2] in STRINGS]


def _with_words(
    path: Path, plain: pq.ParquetFile, row_groups: Sequence[int], columns: Sequence[str], words: Sequence[str]
) -> Iterator[pa.Table]:
    """One table a row group, with words inside lists dictionary-encoded as well: they are decoded three times as fast.

    Arrow can do that for a whole row group alone, and only if the file has them as a dictionary throughout.
    """
    leaves = _leaves(plain, columns)
    with open_history(path, plain.metadata, [*STRINGS, *words]) as file:
        for group in row_groups:
            try:
                table = file.read_row_group(group, columns=leaves, use_threads=False)
            except pa.ArrowNotImplementedError:
                table = plain.read_row_group(group, columns=leaves, use_threads=False)
            yield _complete(table.combine_chunks(), columns)


def _tops(columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.partition(".")[0] for name in columns))


def _leaves(file: pq.ParquetFile, columns: Sequence[str]) -> list[str]:
    """Parquet's own paths of these names."""
    schema = file.schema
    named = [name for field in file.schema_arrow for name in _members(field.name, field.type)]
    return [
        schema.column(leaf).path
        for leaf, name in enumerate(named)
        if any(name == wanted or name.startswith(f"{wanted}.") for wanted in columns)
    ]


def _members(name: str, of: pa.DataType) -> Iterator[str]:
    """A name for each leaf, in the order in which Parquet has them."""
    if not pa.types.is_nested(of):
        yield name
        return
    for member in map(of.field, range(of.num_fields)):
        yield from _members(f"{name}.{member.name}" if pa.types.is_struct(of) else name, member.type)


def _complete(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    tops = _tops(columns)
    for name in tops:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows))
    return table.select(tops)
