"""The monotonic-reads checker: what a process has read of a register that only grows, it never reads smaller again.

Operations, with the register as key and a value {value, timestamp}; or of several registers at once, without a key and
with a value {reads: [{key, value, timestamp}]}, which others write as a map from registers to values:
  read {} -> {value}   ok: what the register held; null if there was nothing, which is less than anything
  inc {} -> {value}    ok: what it held then

What breaks the promise:
  nonmonotonic-read       a process read less than it had read before
  nonmonotonic-timestamp  less was read than what had, by the database's own timestamps, been there earlier
                          (where operations have a timestamp)

A process of unknown outcome goes on under another number, and starts anew. If nothing was read twice, UNKNOWN.

It does not establish that reads are current, nor that one process sees what another one has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import Example, Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
from checkers.causal.uses import registers
from checkers.kernels.columns import NONE, OK, TYPES, Int64, codes, integers, member, run_starts, witness_order
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.prefix import Finals, by_their_names
from harness.compiled import compiled
from harness.record.meaning import Meaning

COLUMNS = ("index", "process", "type", "f", "key", "value")
FUNCTIONS = ("read", "inc")
REGISTER = [pa.field("value", pa.int64()), pa.field("timestamp", pa.int64())]
READ_VALUES = pa.struct([*REGISTER, pa.field("reads", pa.list_(pa.struct([pa.field("key", pa.string()), *REGISTER])))])
"""The value of this workload's operations."""

VALUES_READ = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("register", pa.string()),
        pa.field("process", pa.int32()),
        pa.field("index", pa.int64()),
        *REGISTER,
    ]
)
"""What the ok operation that `index` completes showed of a register; NONE for null."""

COMPARED = "compared"


MEANINGS: Mapping[str, Meaning] = {
    "nonmonotonic-read": Meaning(
        says="A process read a smaller value of a register than it had read before.",
        usually="A read was answered by a replica or a deposed leader that lags behind, or an acknowledged write "
        "was lost.",
    ),
    "nonmonotonic-timestamp": Meaning(
        says="A value was read that is smaller than one with an earlier timestamp of the database.",
        usually="Timestamps come from clocks that disagree, or do not follow the order in which writes were applied.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class MonotonicChecker:
    """Judges reads of registers that only grow."""

    name: str = "monotonic"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("nonmonotonic-read", "nonmonotonic-timestamp")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        values = in_buckets(request, engine, COLUMNS, (read_values, VALUES_READ))
        found = found_in_buckets(request, engine, values, steps_back)
        return judge(
            found.anomalies,
            legal=request.legal,
            undecided=(),
            vacuous=[] if found.tally(COMPARED).count else ["no process read a register twice"],
            statistics=found.counts(COMPARED),
        )


def read_values(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: what the ok operations of a batch showed, in buckets of registers."""
    is_ok = (codes(batch["type"], TYPES) == OK) & (codes(batch["f"], FUNCTIONS) >= 0)
    batch = batch.take(pa.array(np.flatnonzero(is_ok)))
    key = batch["key"].combine_chunks().cast(pa.string())
    value = batch["value"].combine_chunks()
    lists = member(value, "reads")
    if not pa.types.is_list(lists.type):
        lists = pa.nulls(len(lists), READ_VALUES.field("reads").type)
    single = np.flatnonzero(pc.is_null(lists).to_numpy(zero_copy_only=False))
    parents = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    parts = pc.list_flatten(lists)
    row = np.concatenate((single, parents))
    named = registers(key.take(pa.array(parents)), member(parts, "key").cast(pa.string()))
    register = pa.concat_arrays([key.take(pa.array(single)), named])
    fields = [
        np.concatenate((integers(member(value, field.name))[single], integers(member(parts, field.name))))
        for field in REGISTER
    ]
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed_column(register), buckets)),
            register,
            *(
                batch[name].combine_chunks().cast(VALUES_READ.field(name).type).take(pa.array(row))
                for name in ("process", "index")
            ),
            *(pa.array(field) for field in fields),
        ],
        schema=VALUES_READ,
    )


def steps_back(values: pa.Table) -> pa.Table:
    """Kernel over all that was read of a bucket of registers."""
    encoded = pc.dictionary_encode(values["register"].combine_chunks())
    names = encoded.dictionary.to_pylist()
    register = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    process, index, value, timestamp = (values[name].to_numpy() for name in ("process", "index", "value", "timestamp"))
    by_process = np.lexsort((index, process, register))
    stamped = np.flatnonzero(timestamp != NONE)
    # Among equal timestamps there is no order, so the smallest value comes first.
    by_timestamp = stamped[np.lexsort((value[stamped], timestamp[stamped], register[stamped]))]
    findings = Findings()
    for name, order, starts, sentence in (
        (
            "nonmonotonic-read",
            by_process,
            run_starts(register[by_process], process[by_process].astype(np.int64)),
            "process {p} read {v} (by {j}) after it had read {w} (by {i})",
        ),
        (
            "nonmonotonic-timestamp",
            by_timestamp,
            run_starts(register[by_timestamp]),
            "{v} was read (by {j}) with a later timestamp than {w} (by {i})",
        ),
    ):
        earlier = below_earlier(np.cumsum(starts), value[order])
        findings.tally(COMPARED, int((~starts).sum()))
        late = np.flatnonzero(earlier >= 0)
        later, before = order[late], order[earlier[late]]
        chosen = witness_order(index[before], index[later], ties=(register[later],))[:EXAMPLES] if len(late) else late
        examples = []
        for i, j in zip(before[chosen].tolist(), later[chosen].tolist(), strict=True):
            key = names[register[j]] if register[j] >= 0 else None
            v, w = ("nothing" if value[k] == NONE else str(value[k]) for k in (j, i))
            shown = sentence.format(p=process[j], v=v, w=w, i=index[i], j=index[j])
            examples.append(
                Example(
                    key=key,
                    operations=tuple(sorted({int(index[i]), int(index[j])})),
                    because=f"{shown}{f' of {key}' if key else ''}",
                )
            )
        findings.add(name, len(late), examples)
    return findings.table()


@compiled
def below_earlier(group: Int64, value: Int64) -> Int64:
    """For each row the earlier one of its group with the highest value, if that is above its own; else -1.

    Rows of a group lie side by side.
    """
    result = np.full(len(group), -1, dtype=np.int64)
    highest = 0
    for row in range(1, len(group)):
        if group[row] != group[row - 1]:
            highest = row
        elif value[row] < value[highest]:
            result[row] = highest
        else:
            highest = row
    return result
