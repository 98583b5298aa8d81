"""What transactions do to lists, one row an append and a read, in buckets of keys."""

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
    """Of a key that the transaction had not appended to: it shows what others did."""
    UPDATE = 1
    """Such a read, the first one of its key, and the transaction appends to the key later."""
    LATER_READ = 2
    """Of a key that the transaction had appended to."""
    APPEND = 3
    """The transaction's last one to its key."""
    INNER_APPEND = 4
    """The transaction appends to the key again."""


ROWS = pa.schema([*KEY_ROWS, pa.field("values", pa.list_(pa.int64())), pa.field("elsewhere", pa.int8())])
"""All appends, and the reads of ok transactions. `values` is what was read; `elsewhere` is 1 if the transaction appends
to other keys too."""


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Lists one behind the other: list i is pool[first[i]:first[i] + size[i]]."""

    first: Int64
    size: Int64
    pool: Int64

    def __getitem__(self, i: int) -> Int64:
        return self.pool[self.first[i] : self.first[i] + self.size[i]]


def lists_of_column(column: pa.Array) -> Lists:
    """Null is an empty list. The arrays are the caller's own."""
    size, values = sized_elements(column)
    return Lists(first=np.cumsum(size) - size, size=size, pool=np.array(integers(values)))


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The micro-operations of some transactions, one an element, those of a transaction together and in their order."""

    start: Int64
    """Of the transaction, as `end`, `process` and `type`."""
    end: Int64
    process: Int32
    type: Int8
    place: Int32
    """In the transaction."""
    f: Int32
    """Position in FUNCTIONS, -1 for others."""
    names: pa.Array
    """Of keys."""
    key: Int64
    """The number of its name; one more than there are for none."""
    value: Int64
    values: pa.Array


def parts_of(rows: pa.Table) -> Parts:
    """Of MICRO_ROWS."""
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
    """(names, number of each row's name, or how many names there are)."""
    encoded = key if pa.types.is_dictionary(key.type) else pc.dictionary_encode(key)
    return encoded.dictionary, integers(pc.fill_null(encoded.indices, len(encoded.dictionary)))


@dataclass(frozen=True, kw_only=True)
class Chains:
    """The micro-operations of each transaction on each key, linked."""

    previous: Int64
    """The micro-operation before on the same key in the same transaction; -1 for the first."""
    role: Int32
    elsewhere: Bool
    """Whether the transaction appends to more than one key."""


def chains(parts: Parts) -> Chains:
    """Of well-formed micro-operations."""
    previous, role, appended = _chains(parts.start, parts.f, parts.key, len(parts.names) + 1)
    return Chains(previous=previous, role=role, elsewhere=appended > 1)


@compiled
def _chains(start: Int64, f: Int32, key: Int64, keys: int) -> tuple[Int64, Int32, Int64]:
    """(previous, role, to how many keys the transaction appends).

        in one transaction: r x · append x 1 · append x 2 · r x

    x is an UPDATE, an INNER_APPEND, an APPEND and a LATER_READ, each after the one before.
    """
    length = len(start)
    previous = np.full(length, -1, dtype=np.int64)
    role = np.zeros(length, dtype=np.int32)
    appended = np.zeros(length, dtype=np.int64)
    # Per key, of the transaction that touched it last: what is older than `begin` is another transaction's.
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
    """Kernel over MICRO_ROWS: ROWS. What is malformed has none."""
    parts = parts_of(micro)
    return rows_of(parts, chains(parts), buckets)


def rows_of(parts: Parts, linked: Chains, buckets: int) -> pa.Table:
    """ROWS."""
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
