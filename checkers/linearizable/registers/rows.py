"""Operations on registers from rows: pairs if both rows are in one batch, and the others brought together by a shuffle.

A batch of a complete history has nearly all operations whole. Those that began in another batch, or end in another one,
travel as halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import (
    FAIL,
    INFO,
    INVOKE,
    NONE,
    OK,
    TYPES,
    Bool,
    Int8,
    Int32,
    Int64,
    codes,
    integers,
    member,
)
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.linearizable.deciders.register_functions import CAS, CAS_MISS, FUNCTIONS, READ
from checkers.linearizable.deciders.register_values import Registers, numbered
from checkers.linearizable.deciders.spans import Spans
from checkers.linearizable.model import FailedCas
from checkers.linearizable.values import NEVER
from harness.compiled import compiled
from harness.record.history import NO_PARTNER, pairs

COLUMNS = ("index", "process", "type", "f", "key", "value", "error")

WHOLE = 4
"""The type of a whole operation, which stands for both rows; those of rows are INVOKE, OK, FAIL and INFO."""

NAMED = 5
"""The type of a row that is not an operation and only names a register."""

SPANS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("type", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("f", pa.int8()),
        pa.field("value", pa.int64()),
        pa.field("expected", pa.int64()),
    ]
)
"""Operations that may have happened, and halves of operations. NONE stands for null. A half has its index as start and
as end."""

UNSEEN = -1
"""The end of an indefinite operation in a table: a small number, so that it can be packed with others."""


@dataclass(frozen=True, kw_only=True)
class RegisterOperations:
    """The columns of SPANS without the bucket."""

    key: pa.Array
    type: Int8
    process: Int32
    start: Int64
    end: Int64
    f: Int8
    value: Int64
    expected: Int64

    def part(self, chosen: Bool | Int64) -> RegisterOperations:
        positions = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        columns = {name: getattr(self, name)[positions] for name in SPANS.names[2:]}
        return RegisterOperations(key=self.key.take(pa.array(positions)), **columns)

    @property
    def is_whole(self) -> Bool:
        return np.asarray(self.type == WHOLE)

    @property
    def register(self) -> Int64:
        """The position of the register's name in the dictionary of keys."""
        return np.asarray(self.key.indices.to_numpy(zero_copy_only=False), dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """The names of the registers, some of which may have no operations."""
        return list(self.key.dictionary.to_pylist())

    def registers(self, initial: int) -> Registers:
        """The whole operations, which these must be."""
        return numbered(
            count=len(self.key.dictionary),
            register=self.register,
            start=self.start,
            end=self.end,
            f=self.f,
            value=self.value,
            expected=self.expected,
            initial=initial,
        )

    def by_register(self, chosen: Int64) -> Iterator[tuple[str, Spans]]:
        """The operations on each of these registers, which must be whole, by their names."""
        part = self.part(np.isin(self.register, chosen))
        part = part.part(np.lexsort((part.start, part.register)))
        names = self.names
        for number in sorted(chosen.tolist(), key=names.__getitem__):
            at = slice(*np.searchsorted(part.register, [number, number + 1]).tolist())
            yield names[number], part.spans(at)

    def spans(self, at: slice) -> Spans:
        f, value = self.f[at], self.value[at]
        definite = self.end[at] != NEVER
        return Spans(
            start=self.start[at],
            end=self.end[at],
            f=f,
            argument=np.where(f == READ, NONE, value),
            result=np.where(definite, value, NONE),
            expected=self.expected[at],
        )

    def by_key(self, buckets: int) -> pa.Table:
        return self.table(bucket_of(mixed_column(self.key), buckets))

    def table(self, bucket: Int32) -> pa.Table:
        columns = {name: getattr(self, name) for name in SPANS.names[2:]}
        columns["end"] = np.where(self.end == NEVER, UNSEEN, self.end)
        rest = [pa.array(column) for column in columns.values()]
        return pa.Table.from_arrays([pa.array(bucket), self.key.cast(pa.string()), *rest], schema=SPANS)


def from_table(rows: pa.Table) -> RegisterOperations:
    columns = {name: rows[name].to_numpy() for name in SPANS.names[2:]}
    columns["end"] = np.where(columns["end"] == UNSEEN, NEVER, columns["end"])
    return RegisterOperations(key=rows["key"].combine_chunks().dictionary_encode(), **columns)


def from_batch(batch: pa.Table, failed_cas: FailedCas) -> RegisterOperations:
    """The operations on registers in a batch, whole if both rows are in it."""
    index = batch["index"].to_numpy().astype(np.int64)
    nothing_left_out = bool(np.all(index[1:] - index[:-1] == 1))
    f = codes(batch["f"], FUNCTIONS).astype(np.int8)
    used = np.flatnonzero(f >= 0)
    if len(used) < len(f):
        batch, index, f = batch.take(pa.array(used)), index[used], f[used]
    kind = codes(batch["type"], TYPES).astype(np.int8)
    if failed_cas is FailedCas.ANSWER:
        without_error = batch["error"].combine_chunks().is_null().to_numpy(zero_copy_only=False)
        missed = (f == CAS) & (kind == FAIL) & without_error
        f, kind = np.where(missed, CAS_MISS, f).astype(np.int8), np.where(missed, OK, kind).astype(np.int8)
    halves = RegisterOperations(
        key=_names(batch["key"].combine_chunks()),
        type=kind,
        process=batch["process"].to_numpy().astype(np.int32),
        start=index,
        end=index,
        f=f,
        value=integers(member(batch["value"], "value")),
        expected=integers(member(batch["value"], "expected")),
    )
    if not nothing_left_out:
        return halves
    completed = _completed(_owners(halves), kind == INVOKE)
    begun = np.flatnonzero(completed != NO_PARTNER)
    left = np.ones(len(index), dtype=np.bool_)
    left[begun] = left[completed[begun]] = False
    return _joined(_whole(halves, begun, completed[begun]), halves.part(left))


def without_operations(batch: pa.Table, recorded: RegisterOperations) -> RegisterOperations:
    """A row of type NAMED for each register of a batch without recorded operations, because all failed or show
    nothing."""
    rows = batch.filter(pa.array(codes(batch["f"], FUNCTIONS) >= 0))
    names = _names(rows["key"].combine_chunks()).unique().cast(pa.string())
    names = names.filter(pc.invert(pc.is_in(names, recorded.key.unique().cast(pa.string()))))
    nothing = np.zeros(len(names), dtype=np.int64)
    return RegisterOperations(
        key=names.dictionary_encode(),
        type=np.full(len(names), NAMED, dtype=np.int8),
        process=nothing.astype(np.int32),
        start=nothing,
        end=nothing,
        f=nothing.astype(np.int8),
        value=nothing,
        expected=nothing,
    )


def _names(key: pa.Array) -> pa.DictionaryArray:
    if key.null_count:
        key = pc.fill_null(key.cast(pa.string()), "")
    return key.dictionary_encode()


def all_whole(rows: RegisterOperations) -> RegisterOperations:
    """The operations made of all halves; those without a completion are indefinite."""
    halves = rows.part(~rows.is_whole)
    invoked = halves.type == INVOKE
    completed = pairs(halves.start, _owners(halves).astype(np.int32), invoked)
    begun = np.flatnonzero(invoked)
    return _joined(rows.part(rows.is_whole), _whole(halves, begun, completed[begun]))


def _owners(rows: RegisterOperations) -> Int64:
    """A number for each key and process: an operation that a process began on one key does not end on another."""
    process = rows.process.astype(np.int64)
    owner: Int64 = (process - process.min(initial=0)) * max(len(rows.key.dictionary), 1) + rows.register
    if owner.max(initial=0) > DENSE * (len(owner) + 1):
        owner = np.unique(owner, return_inverse=True)[1].astype(np.int64)
    return owner


DENSE = 16
"""How many times more numbers there may be than things that they number."""


@compiled
def _completed(owner: Int64, invoked: Bool) -> Int64:
    """For each invocation, in order, the position of its completion; -1 for all others."""
    completed = np.full(len(owner), -1, dtype=np.int64)
    if len(owner) == 0:
        return completed
    opened = np.full(owner.max() + 1, -1, dtype=np.int64)
    for i in range(len(owner)):
        if invoked[i]:
            opened[owner[i]] = i
        elif opened[owner[i]] >= 0:
            completed[opened[owner[i]]] = i
            opened[owner[i]] = -1
    return completed


def _whole(halves: RegisterOperations, begun: Int64, completed: Int64) -> RegisterOperations:
    """The whole operations of these halves, without those that certainly did not happen or show nothing."""
    became = np.where(completed == NO_PARTNER, INFO, halves.type[completed])
    reads = halves.f[begun] == READ
    kept = (became == OK) | ((became == INFO) & ~reads)
    begun, completed, is_ok, reads = begun[kept], completed[kept], became[kept] == OK, reads[kept]
    return RegisterOperations(
        key=halves.key.take(pa.array(begun)),
        type=np.full(len(begun), WHOLE, dtype=np.int8),
        process=halves.process[begun],
        start=halves.start[begun],
        end=np.where(is_ok, halves.end[completed], NEVER),
        f=np.where(is_ok, halves.f[completed], halves.f[begun]).astype(np.int8),
        value=halves.value[np.where(reads, completed, begun)],
        expected=halves.expected[begun],
    )


def _joined(one: RegisterOperations, other: RegisterOperations) -> RegisterOperations:
    columns = {name: np.concatenate((getattr(one, name), getattr(other, name))) for name in SPANS.names[2:]}
    return RegisterOperations(
        key=pa.chunked_array([one.key, other.key]).unify_dictionaries().combine_chunks(), **columns
    )
