"""What transactions do to lists: one row for each append and each read, in buckets of keys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import NONE, OK, Bool, Int8, Int32, Int64, integers, sized_elements, whole
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.transactions.history.key_rows import KEY_ROWS
from checkers.transactions.history.micro_operations import APPEND, R
from checkers.transactions.history.micro_rows import NOTHING
from harness.compiled import compiled


class ListRole(IntEnum):
    """What a micro-operation is within its transaction."""

    READ = 0
    """A read of a key that the transaction had not appended to: it shows what others did."""
    UPDATE = 1
    """A READ that is the first one of its key, and after which the transaction appends to the key."""
    LATER_READ = 2
    """A read of a key that the transaction had appended to."""
    APPEND = 3
    """The transaction's last append to its key."""
    INNER_APPEND = 4
    """An append after which the transaction appends to the key again."""


ROWS = pa.schema([*KEY_ROWS, pa.field("values", pa.list_(pa.int64())), pa.field("elsewhere", pa.int8())])
"""All appends, and the reads of ok transactions. `values` is what was read. `elsewhere` is 1 if the transaction also
appends to other keys."""


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Lists, one after the other: list i is pool[first[i]:first[i] + size[i]]."""

    first: Int64
    size: Int64
    pool: Int64

    def __getitem__(self, i: int) -> Int64:
        return self.pool[self.first[i] : self.first[i] + self.size[i]]


def lists_of_column(column: pa.Array) -> Lists:
    """The lists of a column, where null is an empty one. The arrays are copies, which the caller may change."""
    size, values = sized_elements(column)
    return Lists(first=np.cumsum(size) - size, size=size, pool=np.array(integers(values)))


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The micro-operations of some transactions, one for each element; those of a transaction follow each other in
    their order."""

    start: Int64
    """When the transaction was invoked. `end`, `process` and `type` are the transaction's, too."""
    end: Int64
    process: Int32
    type: Int8
    place: Int32
    """Its place in the transaction."""
    f: Int32
    """Its position in FUNCTIONS, -1 for others."""
    names: pa.Array
    """The names of keys."""
    key: Int64
    """The number of its key's name; the number of names if it has no key."""
    value: Int64
    values: pa.Array


def parts_of(rows: pa.Table) -> Parts:
    """The micro-operations of MICRO_ROWS."""
    rows = rows.filter(pc.greater(rows["f"], NOTHING))
    start, end, process, kind, place, f, value = (
        rows[name].to_numpy() for name in ("start", "end", "process", "type", "place", "f", "value")
    )
    names, key = _numbered(whole(rows["key"].unify_dictionaries()))
    return Parts(
        start=start,
        end=end,
        process=process,
        type=kind,
        place=place,
        f=f.astype(np.int32),
        names=names,
        key=key,
        value=value,
        values=whole(rows["values"]),
    )


def _numbered(key: pa.Array) -> tuple[pa.Array, Int64]:
    """(names, number of each row's name, or the number of names for a row without a key)."""
    encoded = key if pa.types.is_dictionary(key.type) else pc.dictionary_encode(key)
    return encoded.dictionary, integers(pc.fill_null(encoded.indices, len(encoded.dictionary)))


@dataclass(frozen=True, kw_only=True)
class Chains:
    """The micro-operations of each transaction on each key, linked to each other."""

    previous: Int64
    """The previous micro-operation on the same key in the same transaction; -1 for the first."""
    role: Int32
    elsewhere: Bool
    """Whether the transaction appends to more than one key."""


def chains(parts: Parts) -> Chains:
    """The chains of well-formed micro-operations."""
    previous, role, appended = _chains(parts.start, parts.f, parts.key, len(parts.names) + 1)
    return Chains(previous=previous, role=role, elsewhere=appended > 1)


@compiled
def _chains(start: Int64, f: Int32, key: Int64, keys: int) -> tuple[Int64, Int32, Int64]:
    """(previous, role, how many keys the transaction appends to).

        in one transaction: r x · append x 1 · append x 2 · r x

    x is an UPDATE, an INNER_APPEND, an APPEND and a LATER_READ, each after the one before.
    """
    length = len(start)
    previous = np.full(length, -1, dtype=np.int64)
    role = np.zeros(length, dtype=np.int32)
    appended = np.zeros(length, dtype=np.int64)
    # By key, for the transaction that touched it last. What is before `begin` belongs to another transaction.
    first = np.full(keys, -1, dtype=np.int64)
    last = np.full(keys, -1, dtype=np.int64)
    last_append = np.full(keys, -1, dtype=np.int64)
    begin = 0
    for i in range(length):
        if i > 0 and start[i] != start[i - 1]:
            appended[begin:i] = appended[begin]
            begin = i
        k = key[i]
        if last[k] >= begin:
            previous[i] = last[k]
        else:
            first[k] = i
        last[k] = i
        if f[i] == APPEND:
            role[i] = ListRole.APPEND
            if last_append[k] >= begin:
                role[last_append[k]] = ListRole.INNER_APPEND
            else:
                appended[begin] += 1
                if f[first[k]] == R:
                    role[first[k]] = ListRole.UPDATE
            last_append[k] = i
        else:
            role[i] = ListRole.LATER_READ if last_append[k] >= begin else ListRole.READ
    if length:
        appended[begin:] = appended[begin]
    return previous, role, appended


def list_rows(micro: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over MICRO_ROWS: ROWS. Malformed micro-operations have none."""
    parts = parts_of(micro)
    return rows_of(parts, chains(parts), buckets)


def rows_of(parts: Parts, linked: Chains, buckets: int) -> pa.Table:
    """The ROWS of these micro-operations."""
    kept = (parts.f == APPEND) & (parts.value != NONE) | (parts.f == R) & (parts.type == OK)
    rows = np.flatnonzero(kept & (parts.key < len(parts.names)))
    key = parts.key[rows]
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed_column(parts.names), buckets)[key]),
            parts.names.take(pa.array(key)),
            pa.array(linked.role[rows].astype(np.int8)),
            pa.array(parts.type[rows]),
            pa.array(parts.start[rows]),
            pa.array(parts.end[rows]),
            pa.array(parts.process[rows]),
            pa.array(parts.place[rows]),
            pa.array(parts.value[rows]),
            parts.values.take(pa.array(rows)),
            pa.array(linked.elsewhere[rows].astype(np.int8)),
        ],
        schema=ROWS,
    )


def keys_of(rows: pa.Table) -> tuple[pa.Array, Int64]:
    """(names, number of each row's name)."""
    encoded = pc.dictionary_encode(whole(rows["key"]))
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
