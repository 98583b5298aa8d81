"""Register operations from rows: each with its place in time, one key behind the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import FAIL, INVOKE, NONE, OK, TYPES, Bool, Int8, Int64, codes, integers, member
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.linearizable.models import FailedCas
from harness.history import NO_PARTNER, pairs

COLUMNS = ("index", "process", "type", "f", "key", "value", "error")

FUNCTIONS = ("read", "write", "cas")
READ, WRITE, CAS = range(3)
CAS_MISS = 3
"""A cas that ran and found another value than the one it expected: an observation, like a read."""

NEVER = int(np.iinfo(np.int64).max)
"""The end of an operation that nobody saw end."""

INITIAL = 0
"""The number of the value that a register has before anything is written."""

ROWS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("f", pa.int8()),
        pa.field("value", pa.int64()),
        pa.field("expected", pa.int64()),
        pa.field("answered", pa.bool_()),
    ]
)
"""Rows of a history about registers; NONE for null. `answered`: it failed, and that is an answer."""


def register_rows(batch: pa.Table, *, buckets: int, failed_cas: FailedCas) -> pa.Table:
    """Kernel: what of a batch is about registers."""
    f = codes(batch["f"], FUNCTIONS)
    used = np.flatnonzero(f >= 0)
    batch = batch.take(pa.array(used))
    key = batch["key"].combine_chunks()
    types = codes(batch["type"], TYPES).astype(np.int8)
    answered = np.zeros(len(used), dtype=np.bool_)
    if failed_cas is FailedCas.ANSWER:
        without_error = batch["error"].combine_chunks().is_null().to_numpy(zero_copy_only=False)
        answered = (f[used] == CAS) & (types == FAIL) & without_error
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed_column(key), buckets)),
            key.cast(pa.string()),
            batch["index"].cast(pa.int64()).combine_chunks(),
            batch["process"].cast(pa.int32()).combine_chunks(),
            pa.array(types),
            pa.array(f[used].astype(np.int8)),
            pa.array(integers(member(batch["value"], "value"))),
            pa.array(integers(member(batch["value"], "expected"))),
            pa.array(answered),
        ],
        schema=ROWS,
    )


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operations on one register, by invocation, without those that certainly did not happen or tell nothing.

    Times are history indices: `end` < `start` of another operation means that it came first.
    """

    start: Int64
    end: Int64
    """NEVER if indefinite."""
    f: Int8
    value: Int64
    """Number of the value read or written."""
    expected: Int64
    """Number of the value that a cas expects, or did not find; -1 otherwise."""
    values: Int64
    """The values by number; the first is the initial one."""

    @property
    def definite(self) -> Bool:
        return np.asarray(self.end != NEVER)

    def describe(self, number: int) -> str:
        value = shown(self.values[self.value[number]])
        if self.f[number] == READ:
            what = f"read of {value}"
        elif self.f[number] == WRITE:
            what = f"write of {value}"
        else:
            missed = ", which found another value," if self.f[number] == CAS_MISS else ""
            what = f"cas from {shown(self.values[self.expected[number]])} to {value}{missed}"
        end = "of unknown outcome" if self.end[number] == NEVER else f"completed by {self.end[number]}"
        return f"the {what} (operation {self.start[number]}, {end})"

    def witnesses(self, numbers: set[int]) -> tuple[int, ...]:
        """The history indices of these operations, invocations and completions."""
        indices = {int(self.start[n]) for n in numbers} | {int(self.end[n]) for n in numbers}
        return tuple(sorted(indices - {NEVER}))


def shown(value: int) -> str:
    return "null" if value == NONE else str(int(value))


def operations_by_key(rows: pa.Table, initial: int = NONE) -> list[tuple[str, Operations]]:
    """All registers in these rows, by name; each begins with the initial value."""
    keys = rows["key"].combine_chunks().dictionary_encode()
    column = {name: rows[name].to_numpy() for name in ROWS.names[2:]}
    names = [name if name is not None else "" for name in keys.dictionary.to_pylist()] + [""]
    key = keys.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False).astype(np.int64)

    # A process has one operation open at a time, so its rows about one key alternate as all its rows do.
    partner = pairs_by_key(key, column["index"], column["process"], column["type"] == INVOKE)
    invoked = np.flatnonzero(column["type"] == INVOKE)
    completion = partner[invoked]
    has_end = completion != NO_PARTNER
    end_type = np.where(has_end, column["type"][completion], -1)
    is_ok = end_type == OK
    missed = has_end & column["answered"][completion]
    is_ok |= missed
    reads = column["f"][invoked] == READ
    kept = ((end_type != FAIL) | missed) & ~(reads & ~is_ok)
    invoked, completion, is_ok, reads = invoked[kept], completion[kept], is_ok[kept], reads[kept]

    told = np.where(reads, completion, invoked)
    table = {
        "key": key[invoked],
        "start": column["index"][invoked],
        "end": np.where(is_ok, column["index"][completion], NEVER),
        "f": np.where(missed[kept], CAS_MISS, column["f"][invoked]).astype(np.int8),
        "value": column["value"][told],
        "expected": column["expected"][invoked],
    }
    order = np.lexsort((table["start"], table["key"]))
    table = {name: values[order] for name, values in table.items()}
    bounds = np.searchsorted(table["key"], np.arange(len(names) + 1))
    found = []
    for number, name in enumerate(names):
        part = slice(int(bounds[number]), int(bounds[number + 1]))
        if part.start < part.stop:
            found.append((name, _numbered({field: values[part] for field, values in table.items()}, initial)))
    return sorted(found, key=lambda pair: pair[0])


def pairs_by_key(key: Int64, index: Int64, process: Int64, invoked: Bool) -> Int64:
    """As harness.history.pairs, for rows of several keys."""
    owners = np.unique(key * (int(process.max(initial=0)) + 1) + process, return_inverse=True)[1]
    return pairs(index, owners.astype(np.int32), invoked)


def _numbered(table: dict[str, Int64], initial: int) -> Operations:
    nulls = table["value"] == NONE
    if initial != NONE and not np.any(nulls & (table["f"] != READ)):
        # A register that is never null cannot have been read as null: whoever recorded that left the answer out.
        table = {name: column[~nulls] for name, column in table.items()}
    is_cas = (table["f"] == CAS) | (table["f"] == CAS_MISS)
    used = np.concatenate(([initial], table["value"], table["expected"][is_cas]))
    values, number = np.unique(used, return_inverse=True)
    # The initial value gets number 0, by changing places with the least one.
    place = np.arange(len(values))
    place[[0, number[0]]] = place[[number[0], 0]]
    values, number = values[place], place[number]
    count = len(table["value"])
    expected = np.full(count, -1, dtype=np.int64)
    expected[is_cas] = number[count + 1 :]
    return Operations(
        start=table["start"],
        end=table["end"],
        f=table["f"].astype(np.int8),
        value=number[1 : count + 1].astype(np.int64),
        expected=expected,
        values=values,
    )
