"""Elements of a history: one row for each element that an operation put in, took out or saw, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import (
    INFO,
    NONE,
    OK,
    TYPES,
    Bool,
    Int32,
    Int64,
    codes,
    elements,
    integers,
    member,
    run_starts,
    whole,
)
from checkers.kernels.hashing import bucket_of, mixed, mixed_column
from checkers.kernels.pairing import operations

ELEMENTS = pa.struct([pa.field("value", pa.int64()), pa.field("values", pa.list_(pa.int64()))])
"""The value of these workloads' operations: one element, or all that an operation saw."""

COLUMNS = ("index", "time", "process", "type", "f", "key", "value")

KEY = pa.dictionary(pa.int32(), pa.string())

ROWS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", KEY),
        pa.field("element", pa.int64()),
        pa.field("f", pa.int8()),
        pa.field("type", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("position", pa.int32()),
        pa.field("index", pa.int64()),
        pa.field("time", pa.int64()),
    ]
)
"""One row an element, `position` its place in its list; an operation without any has one row with NONE."""

SPANS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", KEY),
        pa.field("element", pa.int64()),
        pa.field("f", pa.int8()),
        pa.field("type", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("position", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("start_ns", pa.int64()),
        pa.field("end_ns", pa.int64()),
    ]
)
"""The same with both ends of the operation; `type` is how it ended, INFO if there is no completion. What ended so may
take place at any time: its `end` is NEVER, whether or not somebody recorded that it was given up."""

NEVER = int(np.iinfo(np.int64).max)
FAR = 1 << 40
"""More operations than any history has."""


def process_rows(batch: pa.Table, *, functions: Sequence[str], buckets: int) -> pa.Table:
    """Kernel: the rows of a batch, in buckets of processes."""
    f = codes(batch["f"], functions)
    used = np.flatnonzero(f >= 0)
    if len(used) < len(f):
        batch = batch.take(pa.array(used))
    types = codes(batch["type"], TYPES)
    value = integers(member(batch["value"], "value"))
    lists = member(batch["value"], "values")
    single = np.arange(len(types))
    row, element, position = single, value, np.zeros(len(types), dtype=np.int32)
    if not pa.types.is_null(lists.type) and lists.null_count < len(lists):
        parents, listed_elements = elements(lists)
        listed = np.zeros(len(types), dtype=np.bool_)
        listed[parents] = True
        alone = single[(value != NONE) | ~listed]
        row = np.concatenate((alone, parents))
        element = np.concatenate((value[alone], integers(listed_elements)))
        place = np.arange(len(parents))
        place -= np.maximum.accumulate(np.where(run_starts(parents), place, 0))
        position = np.concatenate((np.zeros(len(alone)), place)).astype(np.int32)
    process = batch["process"].to_numpy().astype(np.int32)
    key = whole(batch["key"]).cast(KEY)
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(process), buckets)[row]),
            key if row is single else key.take(pa.array(row)),
            pa.array(element),
            pa.array(f[used][row].astype(np.int8)),
            pa.array(types[row].astype(np.int8)),
            pa.array(process[row]),
            pa.array(position),
            pa.array(batch["index"].to_numpy().astype(np.int64)[row]),
            pa.array(batch["time"].to_numpy().astype(np.int64)[row]),
        ],
        schema=ROWS,
    )


def keyed_rows(batch: pa.Table, *, functions: Sequence[str], buckets: int) -> pa.Table:
    """Kernel: the same in buckets of keys."""
    rows = process_rows(batch, functions=functions, buckets=1)
    return rows.set_column(0, ROWS.field("bucket"), pa.array(bucket_of(mixed_column(rows["key"]), buckets)))


def spans(rows: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over all rows of a bucket of processes: operations, in buckets of elements. Rows without elements stay."""
    position, started = operations(rows)
    element = _named(rows, position, started)
    return _spans(rows, position, started, element, _bucket(rows, position, element, buckets))


def spans_with_heads(rows: pa.Table, *, head: int, buckets: int) -> pa.Table:
    """Kernel: as `spans`; besides, each bucket of elements learns of every ok operation `head`, as a row with NONE."""
    position, started = operations(rows)
    element = _named(rows, position, started)
    index, is_ok = rows["index"].to_numpy()[position], rows["type"].to_numpy()[position] == OK
    heads = np.flatnonzero(is_ok & (rows["f"].to_numpy()[position] == head))
    heads = heads[run_starts(index[heads])]
    heads = np.tile(heads[np.unique(index[heads], return_index=True)[1]], buckets)
    # Operations that name no element are represented by their copies.
    kept = np.flatnonzero((element != NONE) | ~is_ok)
    bucket = _bucket(rows, position[kept], element[kept], buckets)
    chosen = np.concatenate((kept, heads))
    return _spans(
        rows,
        position[chosen],
        started[chosen],
        np.concatenate((element[kept], np.full(len(heads), NONE))),
        np.concatenate((bucket, np.repeat(np.arange(buckets), len(heads) // buckets))),
    )


def _named(rows: pa.Table, position: Int64, started: Int64) -> Int64:
    """The element of each operation: what a completion does not repeat, its invocation named."""
    named = rows["element"].to_numpy()
    element: Int64 = named[position]
    silent = np.flatnonzero(element == NONE)
    element[silent] = named[started[silent]]
    return element


def _bucket(rows: pa.Table, position: Int64, element: Int64, buckets: int) -> Int32:
    return bucket_of(mixed(element, mixed_column(rows["key"])[position]), buckets)


def _spans(rows: pa.Table, position: Int64, started: Int64, element: Int64, bucket: Int32) -> pa.Table:
    """As SPANS, in the order given."""
    index, time, kind = (rows[name].to_numpy() for name in ("index", "time", "type"))
    ended = np.where(position == started, INFO, kind[position])
    is_open = ended == INFO
    return pa.Table.from_arrays(
        [
            pa.array(bucket.astype(np.int32)),
            whole(rows["key"]).take(pa.array(position)),
            pa.array(element),
            pa.array(rows["f"].to_numpy()[position]),
            pa.array(ended.astype(np.int8)),
            pa.array(rows["process"].to_numpy()[position]),
            pa.array(rows["position"].to_numpy()[position]),
            pa.array(index[started]),
            pa.array(np.where(is_open, NEVER, index[position])),
            pa.array(time[started]),
            pa.array(np.where(is_open, NEVER, time[position])),
        ],
        schema=SPANS,
    )


@dataclass(frozen=True, kw_only=True)
class ElementGroups:
    """Spans of elements, sorted by key, element and start: group g is the rows from `first[g]` on."""

    names: tuple[str | None, ...]
    key: Int64
    element: Int64
    f: Int64
    type: Int64
    process: Int64
    position: Int64
    start: Int64
    end: Int64
    start_ns: Int64
    end_ns: Int64
    first: Int64
    group: Int64
    """The group of each row."""

    @property
    def count(self) -> int:
        return len(self.first)

    def sizes(self, rows: Bool) -> Int64:
        """How many of these rows each group has."""
        return np.bincount(self.group[rows], minlength=self.count)

    def smallest(self, rows: Bool, values: Int64) -> Int64:
        """The smallest value among these rows of each group; NEVER without any."""
        result = np.full(self.count, NEVER, dtype=np.int64)
        np.minimum.at(result, self.group[rows], values[rows])
        return result

    def largest(self, rows: Bool, values: Int64) -> Int64:
        """The largest value among these rows of each group; -1 without any."""
        result = np.full(self.count, -1, dtype=np.int64)
        np.maximum.at(result, self.group[rows], values[rows])
        return result

    def report(
        self,
        findings: Findings,
        name: str,
        which: Bool,
        sentence: str,
        *,
        took_ns: Int64 | None = None,
        missed_by: Int64 | None = None,
        excuse: int | None = None,
    ) -> None:
        """These groups have the anomaly; witnessed by their first operations, without completions that are missing.

        For each group, where it means something: how long that took, and an operation that shows it by saying nothing.
        """
        groups = np.flatnonzero(which)
        order = np.lexsort((self.element[self.first[groups]], self.start[self.first[groups]]))
        examples = []
        for group in groups[order][:EXAMPLES].tolist():
            first = int(self.first[group])
            last = int(self.first[group + 1]) if group + 1 < self.count else len(self.element)
            rows = slice(first, min(last, first + WITNESSES))
            witnesses = {int(i) for i in (*self.start[rows], *self.end[rows]) if i != NEVER}
            key, element = self.names[self.key[first]], int(self.element[first])
            details: dict[str, Any] = {"element": element, "operations": last - first}
            because = f"element {element}{f' of {key}' if key else ''} {sentence}"
            if took_ns is not None:
                details["ms"] = int(took_ns[group]) / 1e6
                because += f"; that took {details['ms']:g} ms"
            if missed_by is not None:
                witnesses.add(int(missed_by[group]))
            examples.append(
                Example(key=key, operations=tuple(sorted(witnesses)), tie=(element,), because=because, details=details)
            )
        findings.add(name, len(groups), sorted(examples, key=lambda e: (e.operations, e.tie)), excuse)


WITNESSES = 8
"""The most operations on an element that are shown."""


def element_groups(table: pa.Table) -> ElementGroups:
    """All rows of a bucket of elements."""
    names, key = numbered_keys(table["key"])
    column = {
        name: table[name].to_numpy()
        for name in ("element", "f", "type", "process", "position", "start", "end", "start_ns", "end_ns")
    }
    # Sorting by a column that is the same everywhere costs as much as by any other.
    by = (column["start"], column["element"], key)
    order = np.lexsort(by if len(names) > 2 or table["key"].null_count else by[:2])
    sorted_columns = {name: values[order] for name, values in column.items()}
    starts = run_starts(key[order], sorted_columns["element"])
    return ElementGroups(
        names=names,
        key=key[order],
        first=np.flatnonzero(starts),
        group=np.cumsum(starts) - 1,
        **sorted_columns,
    )


def numbered_keys(keys: pa.ChunkedArray) -> tuple[tuple[str | None, ...], Int64]:
    """The names of keys, and of each row the number of its name; no key is a name too."""
    encoded = whole(keys)
    names = (*encoded.dictionary.to_pylist(), None)
    return names, encoded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False).astype(np.int64)


def is_ok(groups: ElementGroups, *functions: int) -> Bool:
    return np.asarray(np.isin(groups.f, functions) & (groups.type == OK))
