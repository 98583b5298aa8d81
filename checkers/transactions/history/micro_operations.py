"""Transactions as values of a history, and as flat arrays.

A transaction is a list of micro-operations {f, key, value, values}, which other checkers write as `[f key value]`:
  r {key} -> {value}       a read of a register; null if it was never written
  r {key} -> {values}      a read of a list; null if nothing was ever appended
  w {key, value}           a write of a register
  append {key, value}      an element at the end of a list
The completion of the operation has the answer to a read; its invocation leaves it null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import NONE, Bool, Int32, Int64, codes, integers, member

MICRO_OPERATION = pa.struct(
    [
        pa.field("f", pa.string()),
        pa.field("key", pa.string()),
        pa.field("value", pa.int64()),
        pa.field("values", pa.list_(pa.int64())),
    ]
)
TRANSACTION = pa.struct([pa.field("txn", pa.list_(MICRO_OPERATION))])
"""The value of these workloads' operations."""

FUNCTIONS = ("r", "w", "append")
R, W, APPEND = range(3)


@dataclass(frozen=True, kw_only=True)
class MicroOperations:
    """The micro-operations of some transactions, one for each element, in their order."""

    transaction: Int64
    """The row of each one's transaction, ascending."""
    f: Int32
    """Its position in FUNCTIONS, -1 for others."""
    key: pa.Array
    """Its key, as a string."""
    value: Int64
    values: pa.Array
    """Its list, or null; of any type if all are null."""

    @property
    def has_answer(self) -> Bool:
        """By read: whether the answer was anything but null or an empty list."""
        lengths = integers(pc.list_value_length(self.values)) if pa.types.is_list(self.values.type) else 0
        return np.asarray((self.value != NONE) | (lengths > 0))


def micro_operations(transactions: pa.Array | pa.ChunkedArray) -> MicroOperations:
    """All micro-operations of a column of TRANSACTION values, or of their lists."""
    if isinstance(transactions, pa.ChunkedArray):
        transactions = transactions.combine_chunks()
    lists = member(transactions, "txn") if pa.types.is_struct(transactions.type) else transactions
    if not pa.types.is_list(lists.type):
        lists = pa.nulls(len(lists), TRANSACTION.field("txn").type)
    parts = pc.list_flatten(lists)
    key = member(parts, "key")
    return MicroOperations(
        transaction=pc.list_parent_indices(lists).to_numpy().astype(np.int64),
        f=codes(member(parts, "f"), FUNCTIONS),
        key=key if pa.types.is_string(key.type) else key.cast(pa.string()),
        value=integers(member(parts, "value")),
        values=member(parts, "values"),
    )
