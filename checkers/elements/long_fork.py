"""The long-fork checker: all readers see two writes in the same order, or in none.

Operations with a transaction as value, whose micro-operations are reads and writes of registers:
  write [w x 1]                 ok: it happened; no register is written twice
  read [r x nil, r y nil]       ok: what both registers held at one moment

Parallel snapshot isolation allows what snapshot isolation does not: two writes that one read sees in one order and
another one in the other. What breaks the promise:
  long-fork     one read shows x and not y, another one y and not x: counted by pairs of registers
  unexpected    a value was read before a write of it was invoked, or without one
  aborted-read  a value was read, although its write had certainly failed

Reads are all those of any ok transaction, of registers that it does not write itself. Where a register may have been
written more than once, being shown says nothing of order: forks of it and another one are not reported, UNKNOWN. If no
read ever showed one register and not another, nothing was tried: UNKNOWN. The statistics count reads of several
registers: early ones showed none, late ones all of them, the telling ones some.

Cost: the number of pairs of registers that a read shows and does not show, so reads of many registers are expensive.

It does not establish that reads are current, nor anything of transactions that write what they read: cycles do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import FINDINGS, Example, Findings, found_in_buckets, gathered_findings, judge
from checkers.api.plan import CheckRequest, Dataset, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import bucket_count
from checkers.causal.spans import transactions
from checkers.causal.uses import (
    OF_READS_WITHOUT_WRITES,
    REGISTERS,
    REWRITTEN,
    USES,
    registers,
    rewritten_registers,
    unexplained_reads,
    uses_of_registers,
)
from checkers.history_batches import history_rows
from checkers.kernels.columns import NONE, OK, TYPES, Bool, Int32, Int64, codes, run_starts
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.prefix import Finals, by_their_names
from checkers.transactions.history.micro_operations import R, W, micro_operations
from harness.compiled import compiled
from harness.record.meaning import Meaning

COLUMNS = ("index", "type", "key", "value")

SIGHTS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("shown", pa.string()),
        pa.field("missing", pa.string()),
        pa.field("read", pa.int64()),
    ]
)
"""A read, completed by operation `read`, showed one register and not another."""

COUNTED = ("reads", "early reads", "late reads", "telling reads")
"""Tallies that the statistics have by the same names."""


MEANINGS: Mapping[str, Meaning] = {
    "long-fork": Meaning(
        says="One read shows a first write and not a second one, another read shows the second and not the first.",
        usually="Snapshots are taken by each replica on its own, without one order of commits.",
    ),
    **OF_READS_WITHOUT_WRITES,
}


@dataclass(frozen=True, kw_only=True)
class LongForkChecker:
    """Judges reads of several registers, each written once."""

    name: str = "long-fork"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("unexpected")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        history = engine.history(request.history, COLUMNS)
        sights = engine.mapped(history, partial(sights_of_reads, buckets=buckets), SIGHTS)
        uses = engine.mapped(transactions(request, engine), partial(uses_of_registers, buckets=buckets), USES)
        findings = engine.union(
            engine.union(
                engine.grouped(sights, ("bucket",), forks, FINDINGS),
                engine.grouped(uses, ("bucket",), unexplained_reads, FINDINGS),
            ),
            engine.mapped(history, counted_reads, FINDINGS),
        )
        gathered = gathered_findings(engine, findings)
        found, statistics = dict(gathered.anomalies), gathered.counts(*COUNTED)
        undecided = []
        rewritten = gathered.tally(REWRITTEN)
        if rewritten.count:
            if "long-fork" in found:
                del found["long-fork"]
                sights = _of_registers_written_once(engine, sights, uses, buckets)
                found |= found_in_buckets(request, engine, sights, forks).anomalies
            first = rewritten.examples[0]
            undecided.append(f"{rewritten.count} registers may have been written more than once: {first.because}")
        vacuous = [] if statistics["telling reads"] else ["no read showed one register and not another"]
        return judge(found, legal=request.legal, undecided=undecided, vacuous=vacuous, statistics=statistics)


def _of_registers_written_once(engine: Engine, sights: Dataset, uses: Dataset, buckets: int) -> Dataset:
    rewritten = engine.grouped(uses, ("bucket",), rewritten_registers, REGISTERS)
    markers = engine.mapped(rewritten, rewritten_as_sights, SIGHTS)
    for end in ("shown", "missing"):
        placed = engine.mapped(sights, partial(by_register, end=end, buckets=buckets), SIGHTS)
        sights = engine.grouped(
            engine.union(placed, markers), ("bucket",), partial(written_once, end=end, buckets=buckets), SIGHTS
        )
    return sights


def rewritten_as_sights(rewritten: pa.Table) -> pa.Table:
    """Kernel: registers written more than once as rows of SIGHTS, whose `shown` is the register and `read` NONE."""
    nothing = pa.nulls(len(rewritten), pa.string())
    none = pa.array(np.full(len(rewritten), NONE))
    register = rewritten["register"].combine_chunks()
    return pa.Table.from_arrays([rewritten["bucket"], nothing, register, nothing, none], schema=SIGHTS)


def by_register(sights: pa.Table, *, end: str, buckets: int) -> pa.Table:
    """Kernel: the same in buckets of the registers that are at that end."""
    bucket = pa.array(bucket_of(mixed_column(_registers_at(sights, end)), buckets))
    return sights.set_column(0, SIGHTS.field("bucket"), bucket)


def written_once(sights: pa.Table, *, end: str, buckets: int) -> pa.Table:
    """Kernel over all sights of a bucket of registers: those whose register at that end is none of the rewritten ones
    among them, in buckets of pairs."""
    is_marker = pc.equal(sights["read"], NONE)
    rewritten = sights["shown"].filter(is_marker)
    kept = sights.filter(pc.invert(is_marker))
    kept = kept.filter(pc.invert(pc.is_in(_registers_at(kept, end), value_set=rewritten.combine_chunks())))
    shown, missing, keys = (kept[name].combine_chunks() for name in ("shown", "missing", "key"))
    bucket = pa.array(_bucket_of_pairs(keys, shown, missing, buckets))
    return kept.set_column(0, SIGHTS.field("bucket"), bucket)


def _registers_at(sights: pa.Table, end: str) -> pa.Array:
    return registers(sights["key"].combine_chunks(), sights[end].combine_chunks())


def _bucket_of_pairs(keys: pa.Array, one: pa.Array, other: pa.Array, buckets: int) -> Int32:
    """Both orders of a pair meet in one bucket."""
    return bucket_of(mixed_column(keys, mixed_column(one) ^ mixed_column(other)), buckets)


@dataclass(frozen=True)
class Reads:
    """What ok transactions of a batch read of registers that they did not write, sorted by transaction."""

    row: Int64
    register: pa.Array
    present: Bool


def outside_reads(batch: pa.Table) -> Reads:
    parts = micro_operations(batch["value"])
    of_ok = (codes(batch["type"], TYPES) == OK)[parts.transaction]
    register = pc.dictionary_encode(parts.key).indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    both = np.stack((parts.transaction, register), axis=1)
    written = np.unique(both[of_ok & (parts.f == W)], axis=0) if of_ok.any() else both[:0]
    place = parts.transaction * (int(register.max(initial=0)) + 2) + register
    own = np.isin(place, written[:, 0] * (int(register.max(initial=0)) + 2) + written[:, 1])
    used = np.flatnonzero(of_ok & (parts.f == R) & ~own)
    return Reads(parts.transaction[used], parts.key.take(pa.array(used)), parts.has_answer[used])


def counted_reads(batch: pa.Table) -> pa.Table:
    """Kernel: how many reads of a batch are of several registers, and what they show."""
    reads = outside_reads(batch)
    rows, read = np.unique(reads.row, return_inverse=True)
    sizes = np.bincount(read, minlength=len(rows))
    shown = np.bincount(read[reads.present], minlength=len(rows))
    several = sizes > 1
    early, late = several & (shown == 0), several & (shown == sizes)
    findings = Findings()
    for name, which in zip(COUNTED, (several, early, late, several & ~early & ~late), strict=True):
        findings.tally(name, int(which.sum()))
    return findings.table()


def sights_of_reads(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: which register a batch's reads showed while they did not show which other one; each first such read."""
    reads = outside_reads(batch)
    shown, missing = shown_and_missing(reads.row, reads.present)
    row = reads.row[shown]
    index = batch["index"].to_numpy().astype(np.int64)[row]
    register = pc.dictionary_encode(reads.register)
    number = register.indices.to_numpy().astype(np.int64)
    encoded = pc.dictionary_encode(batch["key"].combine_chunks().cast(pa.string()))
    key = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)[row]
    order = np.lexsort((index, number[missing], number[shown], key))
    first = order[run_starts(key[order], number[shown][order], number[missing][order])]
    keys = batch["key"].combine_chunks().cast(pa.string()).take(pa.array(row[first]))
    one, other = (reads.register.take(pa.array(at[first])) for at in (shown, missing))
    bucket = pa.array(_bucket_of_pairs(keys, one, other, buckets))
    return pa.Table.from_arrays([bucket, keys, one, other, pa.array(index[first])], schema=SIGHTS)


@compiled
def shown_and_missing(row: Int64, present: Bool) -> tuple[Int64, Int64]:
    """Positions of all pairs of an element that is shown and one that is not in the same row; rows are sorted."""
    count = 0
    for fill in range(2):
        first = np.empty(count if fill else 0, dtype=np.int64)
        second = np.empty(count if fill else 0, dtype=np.int64)
        count = 0
        start = 0
        while start < len(row):
            end = start
            while end < len(row) and row[end] == row[start]:
                end += 1
            for i in range(start, end):
                if present[i]:
                    for j in range(start, end):
                        if not present[j]:
                            if fill:
                                first[count] = i
                                second[count] = j
                            count += 1
            start = end
    return first, second


def forks(sights: pa.Table) -> pa.Table:
    """Kernel over all sights of a bucket of pairs: those that were seen in both orders."""
    one, other = (sights[name].combine_chunks() for name in ("shown", "missing"))
    names = pc.dictionary_encode(pa.concat_arrays([one, other]))
    number = names.indices.to_numpy().astype(np.int64)
    shown, missing = number[: len(one)], number[len(one) :]
    keys = pc.dictionary_encode(sights["key"].combine_chunks())
    key = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    read = sights["read"].to_numpy()
    low, high = np.minimum(shown, missing), np.maximum(shown, missing)
    order = np.lexsort((read, shown, high, low, key))
    sight = order[run_starts(key[order], low[order], high[order], shown[order])]
    again = np.flatnonzero(~run_starts(key[sight], low[sight], high[sight]))
    first, second = sight[again - 1], sight[again]
    swapped = read[first] > read[second]
    first, second = np.where(swapped, second, first), np.where(swapped, first, second)
    chosen = np.lexsort((read[second], read[first]))[:EXAMPLES]
    examples = []
    for i in chosen.tolist():
        x, y = (names.dictionary[int(number)].as_py() for number in (shown[first[i]], missing[first[i]]))
        begun, later = int(read[first[i]]), int(read[second[i]])
        examples.append(
            Example(
                key=sights["key"][int(first[i])].as_py(),
                operations=tuple(sorted({begun, later})),
                because=(
                    f"the read completed by {begun} shows {x} and not yet {y}, "
                    f"the one completed by {later} shows {y} and not yet {x}"
                ),
                details={"registers": [x, y]},
            )
        )
    findings = Findings()
    findings.add("long-fork", len(again), examples)
    return findings.table()
