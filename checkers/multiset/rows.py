"""Elements of a history: one row for each element that an operation put in, took out or saw, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.findings import Example, Findings
from checkers.kernels.columns import (
    INFO,
    INVOKE,
    NONE,
    OK,
    TYPES,
    Bool,
    Int64,
    codes,
    elements,
    integers,
    member,
    run_starts,
    whole,
)
from checkers.kernels.hashing import bucket_of, mixed, mixed_column
from checkers.verdict import EXAMPLES
from harness.history import NO_PARTNER, pairs

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
"""The same with both ends of the operation; `type` is how it ended, INFO with `end` NEVER if nobody saw that."""

NEVER = int(np.iinfo(np.int64).max)


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
    index, process, time = (rows[name].to_numpy() for name in ("index", "process", "time"))
    kind = rows["type"].to_numpy()
    element = rows["element"].to_numpy()
    # A completion may have many rows; the first one of each operation is what is paired.
    # They mostly lie side by side, so few are left to sort.
    heads = np.flatnonzero(run_starts(index))
    heads = heads[np.argsort(index[heads], kind="stable")]
    heads = heads[run_starts(index[heads])]
    invoked = kind[heads] == INVOKE
    partner = pairs(index[heads], process[heads], invoked)
    still_open = heads[invoked & (partner == NO_PARTNER)]
    completions = heads[~invoked]
    invocations = heads[partner[~invoked]]

    told = np.flatnonzero(kind != INVOKE)
    begun = invocations[np.searchsorted(index[completions], index[told])]
    # What a completion does not repeat, its invocation told.
    named = np.where(element[told] == NONE, element[begun], element[told])
    position = np.concatenate((told, still_open))
    started = np.concatenate((begun, still_open))
    named = np.concatenate((named, element[still_open]))
    never = np.full(len(still_open), NEVER)
    key = whole(rows["key"]).take(pa.array(position))
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(named, mixed_column(key)), buckets)),
            key,
            pa.array(named),
            whole(rows["f"]).take(pa.array(position)),
            pa.array(np.concatenate((kind[told], np.full(len(still_open), INFO))).astype(np.int8)),
            pa.array(process[position]),
            whole(rows["position"]).take(pa.array(position)),
            pa.array(index[started]),
            pa.array(np.concatenate((index[told], never))),
            pa.array(time[started]),
            pa.array(np.concatenate((time[told], never))),
        ],
        schema=SPANS,
    )


def spans_with_heads(rows: pa.Table, *, head: int, buckets: int) -> pa.Table:
    """Kernel: as `spans`; besides, each bucket of elements learns of every ok operation `head`, as a row with NONE."""
    operations = spans(rows, buckets=buckets)
    end = operations["end"].to_numpy()
    of_head = np.flatnonzero((operations["f"].to_numpy() == head) & (operations["type"].to_numpy() == OK))
    of_head = of_head[run_starts(end[of_head])]
    of_head = of_head[np.unique(end[of_head], return_index=True)[1]]
    copies = operations.take(pa.array(np.tile(of_head, buckets)))
    bucket = pa.array(np.repeat(np.arange(buckets, dtype=np.int32), len(of_head)))
    copies = copies.set_column(0, SPANS.field("bucket"), bucket)
    copies = copies.set_column(2, SPANS.field("element"), pa.array(np.full(len(bucket), NONE)))
    # Operations that name no element are told by their copies.
    named = pa.array((operations["element"].to_numpy() != NONE) | (operations["type"].to_numpy() != OK))
    return pa.concat_tables([operations.filter(named), copies]).unify_dictionaries().combine_chunks()


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
    ) -> None:
        """These groups have the anomaly; witnessed by their first operations, all but those nobody saw end.

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
        findings.add(name, len(groups), sorted(examples, key=lambda e: (e.operations, e.tie)))


WITNESSES = 8
"""At most so many operations on an element are shown."""


def element_groups(table: pa.Table) -> ElementGroups:
    """All rows of a bucket of elements."""
    encoded = whole(table["key"])
    names = (*encoded.dictionary.to_pylist(), None)
    key = encoded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
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


def is_ok(groups: ElementGroups, *functions: int) -> Bool:
    return np.asarray(np.isin(groups.f, functions) & (groups.type == OK))
