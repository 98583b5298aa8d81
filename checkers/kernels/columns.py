"""Arrow columns as plain numpy arrays, with sentinels instead of nulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int8 = npt.NDArray[np.int8]
Bool = npt.NDArray[np.bool_]

NONE = int(np.iinfo(np.int64).min)
"""Stands for null in integer arrays."""
NO_INDEX = -1
"""Stands for "none" in arrays of indices (of rows, events, versions, edges)."""

TYPES = ("invoke", "ok", "fail", "info")
INVOKE, OK, FAIL, INFO = range(4)


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array, copied only if it is in pieces; Arrow's `combine_chunks` always copies."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def codes(column: pa.Array | pa.ChunkedArray, vocabulary: Sequence[str]) -> Int32:
    """Position of each string in `vocabulary`; -1 for nulls and for strings that are not in it."""
    position = {word: code for code, word in enumerate(vocabulary)}
    return translated(column, position)


def translated(column: pa.Array | pa.ChunkedArray, numbers: Mapping[str, int]) -> Int32:
    """The number of each string; -1 for nulls and for strings without one. Cost: one look-up for each distinct
    string."""
    column = whole(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, dtype=np.int32)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    words = column.dictionary.to_pylist()
    table = np.array([numbers.get(word, -1) for word in words] + [-1], dtype=np.int32)
    indices = pc.fill_null(column.indices, len(words)) if column.null_count else column.indices
    numbered: Int32 = table[indices.to_numpy()]
    return numbered


def integers(column: pa.Array | pa.ChunkedArray) -> Int64:
    """An integer column with NONE for null."""
    if pa.types.is_null(column.type):
        return np.full(len(column), NONE, dtype=np.int64)
    column = whole(column)
    if column.null_count:
        column = pc.fill_null(column.cast(pa.int64()), NONE)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def member(struct: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """One field of a struct column; null where the struct is. All null if the struct has no such field."""
    struct = whole(struct)
    if not pa.types.is_struct(struct.type) or struct.type.get_field_index(name) < 0:
        return pa.nulls(len(struct))
    return pc.struct_field(struct, name)


def elements(lists: pa.Array) -> tuple[Int64, pa.Array]:
    """(position of its list, value) of each element of all lists, one after the other. Null lists have none."""
    if not pa.types.is_list(lists.type):
        return pc.list_parent_indices(lists).to_numpy().astype(np.int64), pc.list_flatten(lists)
    sizes, values = sized_elements(lists)
    return np.repeat(np.arange(len(lists)), sizes), values


def sized_elements(lists: pa.Array) -> tuple[Int64, pa.Array]:
    """(size of each list, all elements one behind the other). Null lists have none."""
    sizes = integers(pc.fill_null(pc.list_value_length(lists), 0))
    first, last = (lists.offsets[i].as_py() for i in (0, len(lists)))
    # Flattening gathers the pieces between nulls, which takes longer than all later work on them.
    whole_piece = last - first == sizes.sum()
    return sizes, lists.values.slice(first, last - first) if whole_piece else pc.list_flatten(lists)


def compact(values: Int64) -> Int64:
    """Numbers in the same order, from 0 up to a few times the number of values."""
    if len(values) == 0:
        return values
    least, greatest = int(values.min()), int(values.max())
    if greatest - least < 4 * len(values):
        return values - least
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def run_starts(*sorted_columns: npt.NDArray[np.generic]) -> Bool:
    """True where a row differs from the row before in any of the columns; true at row 0."""
    length = len(sorted_columns[0])
    starts = np.zeros(length, dtype=np.bool_)
    if length:
        starts[0] = True
    for column in sorted_columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def witness_order(*operations: Int64, ties: tuple[Int64, ...] = ()) -> Int64:
    """Positions sorted by their sets of operations (as ascending tuples without repetition compare), then by `ties`."""
    ascending = np.sort(np.stack(operations), axis=0)
    largest = np.iinfo(np.int64).max
    ascending[1:][ascending[1:] == ascending[:-1]] = largest
    ascending.sort(axis=0)
    ascending[ascending == largest] = -1
    return np.lexsort((*ties[::-1], *ascending[::-1]))
