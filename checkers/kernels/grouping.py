"""Cuts a table into its groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def groups(table: pa.Table, keys: Sequence[str]) -> Iterator[pa.Table]:
    """One table for each distinct combination of `keys`, in ascending order of the keys; rows keep their order."""
    if table.num_rows == 0:
        return
    ids = np.zeros(table.num_rows, dtype=np.int64)
    for key in keys:
        if _is_constant(table[key]):
            continue
        column = _ranks(table[key])
        ids = ids * (int(column.max()) + 1) + column
        # Keeps the combined number below the number of rows squared, whatever the number of keys.
        ids = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    if ids.max() == 0:
        yield table
        return
    order = np.argsort(ids, kind="stable")
    bounds = np.flatnonzero(np.diff(ids[order])) + 1
    ordered = table.take(pa.array(order))
    start = 0
    for end in [*bounds.tolist(), table.num_rows]:
        yield ordered.slice(start, end - start).combine_chunks()
        start = end


def _is_constant(column: pa.ChunkedArray) -> bool:
    """Cheap to see, and the usual case where a partition holds one bucket."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    bounds = pc.min_max(column).as_py()
    return bool(bounds["min"] == bounds["max"])


def _ranks(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Dense numbers that sort like the values, nulls first."""
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return np.unique(column.to_numpy(), return_inverse=True)[1].astype(np.int64)
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    encoded = encoded.unify_dictionaries().combine_chunks()
    values = encoded.dictionary.to_pylist()
    rank = np.zeros(len(values) + 1, dtype=np.int64)
    for position, code in enumerate(sorted(range(len(values)), key=lambda code: values[code]), start=1):
        rank[code] = position
    ranks: npt.NDArray[np.int64] = rank[pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)]
    return ranks
