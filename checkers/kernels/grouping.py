"""Cuts a table into its groups, and into partitions that keep groups whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import whole
from checkers.kernels.hashing import partition_of
from checkers.kernels.packing import packed

Int64 = npt.NDArray[np.int64]

CLOSE = 1 << 16
"""Numbers up to here are sorted in one go, without comparing them."""


@dataclass(frozen=True)
class Cut:
    """Rows in the order of their numbers."""

    rows: pa.Table
    numbers: Sequence[int]
    """The numbers that rows have, ascending."""
    bounds: Sequence[int]
    """Where the rows of each number begin, and, in the last place, where they end."""

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each number."""
        if len(self.numbers) == 1:
            yield self.numbers[0], self.rows
            return
        for number, (start, end) in zip(self.numbers, pairwise(self.bounds), strict=True):
            yield number, self.rows.slice(start, end - start)


def groups(table: pa.Table, keys: Sequence[str]) -> Iterator[pa.Table]:
    """One table for each distinct combination of `keys`, in ascending order of the keys; rows keep their order."""
    if table.num_rows == 0:
        return
    ids = np.zeros(table.num_rows, dtype=np.int64)
    for key in keys:
        column = _ranks(table[key])
        ids = ids * (int(column.max()) + 1) + column
        if ids.max() >= CLOSE:
            # Keeps the combined number below the number of rows squared, whatever the number of keys.
            ids = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    for _, group in _cut(table, ids).parts():
        is_whole = group is table and all(column.num_chunks == 1 for column in group.columns)
        yield group if is_whole else group.combine_chunks()


def partitions(table: pa.Table, schema: pa.Schema, keys: Sequence[str], count: int) -> Cut:
    """The rows packed, and cut by partition; rows that agree on `keys` are in one, and keep their order."""
    if table.num_rows == 0:
        return Cut(table, (), (0,))
    return _cut(packed(table, schema), partition_of(table, keys, count))


def undivided(table: pa.Table, schema: pa.Schema) -> Cut:
    """The rows packed, all of them of number 0."""
    return Cut(packed(table, schema), (0,), (0, table.num_rows)) if table.num_rows else Cut(table, (), (0,))


def _cut(table: pa.Table, number: npt.NDArray[np.integer]) -> Cut:
    """Cuts by the number of each row; there must be at least one row."""
    highest = int(number.max())
    if int(number.min()) == highest:
        return Cut(table, (highest,), (0, table.num_rows))
    # Numbers of up to 16 bits are sorted by counting.
    number = number.astype(np.min_scalar_type(highest))
    order = np.argsort(number, kind="stable")
    ordered, number = table.take(pa.array(order)), number[order]
    starts = np.concatenate(([0], np.flatnonzero(number[1:] != number[:-1]) + 1))
    return Cut(ordered, number[starts].tolist(), [*starts.tolist(), len(number)])


def _ranks(column: pa.ChunkedArray) -> Int64:
    """Numbers that sort like the values, nulls first; close to each other if the values are."""
    if pa.types.is_integer(column.type) and column.null_count == 0:
        numbers: Int64 = column.to_numpy().astype(np.int64)
        lowest = int(numbers.min())
        if int(numbers.max()) - lowest >= CLOSE:
            return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
        return numbers - lowest
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    encoded = whole(encoded.unify_dictionaries())
    values = encoded.dictionary.to_pylist()
    rank = np.zeros(len(values) + 1, dtype=np.int64)
    for position, code in enumerate(sorted(range(len(values)), key=lambda code: values[code]), start=1):
        rank[code] = position
    ranks: Int64 = rank[pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)]
    return ranks
