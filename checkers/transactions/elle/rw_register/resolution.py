"""Finds the writes that reads of registers show.

Values written to a key are unique, so each shows its write. A history with two writes of one value does not belong to
this workload.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.adjacency import by_source
from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int8, Int32, Int64, whole
from checkers.kernels.hashing import place_of
from checkers.kernels.sorting import ascending
from checkers.transactions.elle.rw_register.rows import RegisterRole
from checkers.transactions.history.committed import NEVER
from checkers.transactions.history.committed_rows import INITIAL_VERSION, IS_WRITE, RESOLVED
from harness.compiled import compiled

NOTHING = -2
"""An entry of `writer`. For a read it is the initial version; for a write, that no earlier row writes the same
value."""


@dataclass(frozen=True, kw_only=True)
class Registers:
    """All rows of a bucket of keys, sorted by key, transaction and place."""

    rows: pa.Table
    """The ROWS, in the order in which they came."""
    in_order: Int64
    """Positions of these rows, sorted by transaction and place."""
    row: Int64
    """Positions of these rows, sorted by key, transaction and place. All fields below are sorted the same way."""
    names: pa.Array
    """The names of keys, in their order."""
    key: Int32
    """The key of each row, as a position in `names`."""
    role: Int8
    type: Int8
    start: Int64
    place: Int32
    value: Int64
    writer: Int64
    """A read has the row that wrote what it shows, NO_INDEX if no write has that value, or NOTHING. A write has an
    earlier row that writes the same value, or NOTHING."""

    @classmethod
    def of(cls, rows: pa.Table) -> Registers:
        """The registers of ROWS, which may come in any order. Malformed rows are left out."""
        role = whole(rows["role"]).to_numpy()
        if (role == RegisterRole.MALFORMED).any():
            rows = rows.filter(pa.array(role != RegisterRole.MALFORMED)).combine_chunks()
        encoded = pc.dictionary_encode(whole(rows["key"]))
        by_name = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
        rank = np.empty(len(by_name), dtype=np.int32)
        rank[by_name] = np.arange(len(by_name))
        key = rank[encoded.indices.to_numpy()]
        columns = {name: whole(rows[name]).to_numpy() for name in ("role", "type", "start", "place", "value")}
        in_order = _in_order(columns["start"], columns["place"])
        order = in_order[by_source(key[in_order], len(rank))[1]]
        key = key[order]
        columns = {name: column[order] for name, column in columns.items()}
        writer = _writers(key, columns["role"], columns["value"])
        names = encoded.dictionary.take(pa.array(by_name))
        return cls(rows=rows, in_order=in_order, row=order, names=names, key=key, writer=writer, **columns)

    @cached_property
    def end(self) -> Int64:
        return self._of_rows("end")

    @cached_property
    def process(self) -> Int32:
        return self._of_rows("process")

    def _of_rows(self, name: str) -> npt.NDArray[Any]:
        column: npt.NDArray[Any] = whole(self.rows[name]).to_numpy()
        return column[self.row]

    def name(self, row: int | np.integer) -> str:
        """The name of the row's key."""
        return str(self.names[int(self.key[row])].as_py())

    @property
    def is_read(self) -> Bool:
        return np.asarray(self.role <= RegisterRole.CONTRADICTION)

    @cached_property
    def resolved(self) -> Bool:
        """Which rows are reads of the initial version, or of the last write of another transaction that may have
        committed."""
        by = np.maximum(self.writer, 0)
        final = (self.role[by] == RegisterRole.WRITE) & (self.type[by] != FAIL) & (self.start[by] != self.start)
        external = self.role == RegisterRole.READ
        return np.asarray(external & ((self.writer == NOTHING) | ((self.writer >= 0) & final)))

    @cached_property
    def installed(self) -> Bool:
        """Which rows are last writes of transactions that may have committed."""
        return np.asarray((self.role == RegisterRole.WRITE) & (self.type != FAIL))


def _in_order(start: Int64, place: Int32) -> Int64:
    """The rows sorted by transaction and place; they nearly come in that order."""
    if not len(start):
        return np.zeros(0, dtype=np.int64)
    earliest, places = int(start.min()), int(place.max()) + 1
    if (int(start.max()) - earliest + 1) * places > NEVER:
        return np.lexsort((place, start))
    return ascending((start - earliest) * places + place)


@compiled
def _writers(key: Int32, role: Int8, value: Int64) -> Int64:
    """`Registers.writer`, found by a hash table of all writes (key and value) with linear probing.

        w x 1 · r x = 1 · r x = 7 · r x = null

    The writers of the reads are the first row, NO_INDEX and NOTHING.
    """
    length = len(key)
    writer = np.full(length, NOTHING, dtype=np.int64)
    size = 16
    while size < 2 * length:
        size *= 2
    row_of = np.full(size, -1, dtype=np.int64)
    for is_write in (True, False):
        for i in range(length):
            if (role[i] >= RegisterRole.WRITE) != is_write or value[i] == NONE:
                continue
            at = place_of(value[i], key[i], size)
            while row_of[at] >= 0 and (value[row_of[at]] != value[i] or key[row_of[at]] != key[i]):
                at = (at + 1) & (size - 1)
            if not is_write or row_of[at] >= 0:
                writer[i] = row_of[at]
            else:
                row_of[at] = i
    return writer


def resolved(rows: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over all ROWS of a bucket: RESOLVED."""
    if not rows.num_rows:
        return RESOLVED.empty_table()
    return resolved_of(Registers.of(rows), rows["bucket"][0].as_py(), buckets)


def resolved_of(registers: Registers, bucket: int, buckets: int) -> pa.Table:
    """RESOLVED in the order of transactions, so that whatever sorts them by transaction goes through memory in
    order."""
    external = np.flatnonzero(registers.installed | registers.resolved)
    at = np.full(len(registers.row), -1, dtype=np.int64)
    at[registers.row[external]] = external
    chosen = registers.in_order[at[registers.in_order] >= 0]
    at = at[chosen]
    by = registers.writer[at]
    read_from = np.where(by == NOTHING, INITIAL_VERSION, registers.start[np.maximum(by, 0)])
    start, end, process, kind, place = (
        whole(registers.rows[name]).to_numpy()[chosen] for name in ("start", "end", "process", "type", "place")
    )
    return pa.Table.from_arrays(
        [
            pa.array(start),
            pa.array(np.where(kind == OK, end, NEVER)),
            pa.array(process),
            pa.array(kind),
            pa.array(place),
            pa.array(bucket + buckets * registers.key[at].astype(np.int64)),
            pa.array(np.where(registers.role[at] == RegisterRole.WRITE, IS_WRITE, read_from)),
        ],
        schema=RESOLVED,
    )


def key_names(rows: pa.Table, *, codes: frozenset[int], buckets: int) -> pa.Table:
    """Kernel over all ROWS of a bucket: NAMES of the wanted keys that are in it."""
    if not rows.num_rows:
        return NAMES.empty_table()
    bucket = rows["bucket"][0].as_py()
    names = Registers.of(rows).names
    mine = sorted(code for code in codes if code % buckets == bucket and code // buckets < len(names))
    return pa.table({"key": mine, "name": names.take(pa.array([code // buckets for code in mine], pa.int64()))}, NAMES)


NAMES = pa.schema([pa.field("key", pa.int64()), pa.field("name", pa.string())])
