"""Tables in few bytes, for the way from one kernel to the next.

Most columns of a batch have numbers that are close to each other, or the same number in every row. A packed table keeps
the distance of each from the lowest one, in as few bytes as possible, and nothing if all are the same. What is held in
memory or shuffled is a third of what kernels see.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from checkers.kernels.columns import whole

LOWEST = b"lowest"
"""The key in the metadata of a packed column for the number to add to each of its values. If they are all null, each of
them is that number."""


def packed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows; only `joined` can read their integers. `schema` is that of the table, up to casts."""
    if table.num_rows == 0:
        return schema.empty_table()
    fields, arrays = zip(*map(_packed, schema, table.cast(schema).columns), strict=True)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def joined(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows of packed tables as one table of one chunk. `schema` is the one they had before."""
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return schema.empty_table()
    return pa.Table.from_arrays([joined_column(parts, field) for field in schema], schema=schema)


def joined_column(parts: Sequence[pa.Table], field: pa.Field) -> pa.Array:
    """One column of these tables, packed or not, for kernels that need few at a time; `field` is what it was before."""
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return pa.array([], field.type)
    lowest = [_lowest(part.field(field.name)) for part in parts]
    return _joined(field.type, lowest, [whole(part.column(field.name)) for part in parts])


def _packed(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.Array]:
    array = whole(column)
    if not pa.types.is_integer(field.type) or array.null_count:
        return field, array
    values = array.to_numpy()
    lowest, highest = values.min(), values.max()
    if lowest == highest:
        array = pa.nulls(len(values))
    else:
        dtype = np.min_scalar_type(int(highest) - int(lowest))
        if dtype.itemsize >= values.itemsize:
            return field, array
        array = pa.array((values - lowest).astype(dtype))
    return pa.field(field.name, array.type, metadata={LOWEST: str(lowest)}), array


def _lowest(field: pa.Field) -> int | None:
    return int(field.metadata[LOWEST]) if field.metadata and LOWEST in field.metadata else None


def _joined(wide: pa.DataType, lowest: Sequence[int | None], arrays: Sequence[pa.Array]) -> pa.Array:
    if all(number is None for number in lowest):
        return whole(pa.chunked_array(arrays, wide).unify_dictionaries())
    if any(number is None and array.null_count for number, array in zip(lowest, arrays, strict=True)):
        widened = [_joined(wide, [number], [array]) for number, array in zip(lowest, arrays, strict=True)]
        return pa.chunked_array(widened, wide).combine_chunks()
    values = np.empty(sum(map(len, arrays)), dtype=wide.to_pandas_dtype())
    start = 0
    for number, array in zip(lowest, arrays, strict=True):
        _widen(array, number or 0, values[start : start + len(array)])
        start += len(array)
    return pa.array(values)


def _widen(array: pa.Array, lowest: int, into: npt.NDArray[np.integer]) -> None:
    if pa.types.is_null(array.type):
        into[:] = lowest
    else:
        np.add(array.to_numpy(), lowest, out=into, dtype=into.dtype)
