"""Registers that no worker could hold: of each only the decisive operations are kept, and these are judged.

Of the operations on one value three are decisive: the write, the read that ended first and the read that began last.
They have a zone (`deciders.zones`). Of the zones of a stretch of time these are decisive: the first and the last
forward zone, the backward zones that are over first before and behind them, and two that are crossed, if there are any.
So there are two shuffles, one that brings together what is about a value and one by time, and what is left of a
register, a few operations for each stretch, is decided as any other register is, with the same outcome: were all of it
decided at once, the same operations would contradict each other.

A register of which a value is written twice, or that has a cas, is not decided: it would have to be seen as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.plan import Dataset, Engine
from checkers.buckets import bucket_count
from checkers.kernels.columns import NO_INDEX, NONE, Bool, Int64
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.linearizable.deciders.chains import Chains, Clusters, chains, clusters
from checkers.linearizable.deciders.register_functions import CAS, READ
from checkers.linearizable.deciders.register_values import Registers
from checkers.linearizable.deciders.zones import Zones, crossed, zones
from checkers.linearizable.model import FailedCas
from checkers.linearizable.registers.rows import SPANS, RegisterOperations, all_whole, from_batch, from_table
from harness.compiled import compiled

VAST_ROWS = 4_000_000
"""A register of more rows of the history is vast; one of fewer is decided in one worker's memory."""

ROWS_OF_KEYS = pa.schema([pa.field("bucket", pa.int32()), pa.field("key", pa.string()), pa.field("rows", pa.int64())])


def vast_registers(engine: Engine, keys: Dataset, rows: int) -> tuple[str, ...]:
    """Names of the registers that have more than VAST_ROWS rows of a history of `rows`, of which these are the keys."""
    if rows <= VAST_ROWS:
        return ()
    counted = engine.mapped(keys, partial(rows_by_key, buckets=bucket_count(rows)), ROWS_OF_KEYS)
    vast = engine.grouped(counted, ("bucket",), partial(keys_with_more, rows=VAST_ROWS), ROWS_OF_KEYS)
    return tuple(sorted(engine.gather(vast, rows // VAST_ROWS)["key"].to_pylist()))


def rows_by_key(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: how many rows of a batch each key has."""
    counts = pc.value_counts(pc.fill_null(batch["key"].combine_chunks().cast(pa.string()), ""))
    keys, rows = counts.field("values"), counts.field("counts")
    return pa.Table.from_arrays([pa.array(bucket_of(mixed_column(keys), buckets)), keys, rows], schema=ROWS_OF_KEYS)


def keys_with_more(counts: pa.Table, *, rows: int) -> pa.Table:
    """Kernel over the counts of a bucket of keys."""
    totals = counts.group_by(["bucket", "key"]).aggregate([("rows", "sum")]).rename_columns(ROWS_OF_KEYS.names)
    return totals.filter(pc.greater(totals["rows"], rows)).cast(ROWS_OF_KEYS)


def decisive_operations(
    engine: Engine, history: Dataset, keys: tuple[str, ...], *, rows: int, initial: int, failed_cas: FailedCas
) -> Dataset:
    """SPANS of these registers, a few for each stretch of time."""
    buckets = bucket_count(rows)
    whole = engine.mapped(history, partial(whole_operations, keys=keys, failed_cas=failed_cas, buckets=buckets), SPANS)
    halves = engine.mapped(history, partial(half_operations, keys=keys, failed_cas=failed_cas, buckets=buckets), SPANS)
    joined = engine.grouped(halves, ("bucket",), partial(halves_joined, buckets=buckets), SPANS)
    by_value = engine.union(whole, joined)
    by_time = engine.grouped(
        by_value, ("bucket",), partial(decisive_of_values, of=rows, buckets=buckets, initial=initial), SPANS
    )
    return engine.grouped(by_time, ("bucket",), partial(decisive_of_stretch, initial=initial), SPANS)


def whole_operations(batch: pa.Table, *, keys: tuple[str, ...], failed_cas: FailedCas, buckets: int) -> pa.Table:
    """Kernel: what began and ended in a batch, without the reads that say nothing beside others of the same value."""
    recorded = from_batch(batch, failed_cas)
    recorded = recorded.part(recorded.is_about(keys) & recorded.is_whole)
    seen = _seen(recorded, NONE)
    decisive = (recorded.f != READ) | seen.marked(seen.clusters.first_read) | seen.marked(seen.clusters.last_read)
    return recorded.part(decisive).by_value(buckets)


def half_operations(batch: pa.Table, *, keys: tuple[str, ...], failed_cas: FailedCas, buckets: int) -> pa.Table:
    """Kernel: what began in a batch or ended in it, but not both."""
    recorded = from_batch(batch, failed_cas)
    return recorded.part(recorded.is_about(keys) & ~recorded.is_whole).by_process(buckets)


def halves_joined(rows: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over all halves of a bucket of processes."""
    return all_whole(from_table(rows)).by_value(buckets)


def decisive_of_values(rows: pa.Table, *, of: int, buckets: int, initial: int) -> pa.Table:
    """Kernel over all operations on the values of a bucket: the decisive ones, by the time at which their zones begin.

    `of`: rows of the history.
    """
    recorded = from_table(rows)
    seen = _seen(recorded, initial)
    decisive = seen.decisive(seen.zones.chain)
    low = np.zeros(len(seen.registers.owner), dtype=np.int64)
    low[seen.zones.chain] = np.maximum(seen.zones.low, 0)
    begins = low[seen.registers.value[decisive]]
    return recorded.part(decisive).table(np.minimum(begins * buckets // of, buckets - 1).astype(np.int32))


def decisive_of_stretch(rows: pa.Table, *, initial: int) -> pa.Table:
    """Kernel over the decisive operations of a stretch of time: of these the decisive ones."""
    recorded = from_table(rows)
    seen = _seen(recorded, initial)
    zones_kept = decisive_zones(seen.zones, seen.registers.registers)
    return recorded.part(seen.decisive(seen.zones.chain[zones_kept])).by_key(1)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """Some of the operations on some registers, seen by value."""

    register: Int64
    registers: Registers
    clusters: Clusters
    chains: Chains
    zones: Zones

    def marked(self, *operations: Int64) -> Bool:
        """These operations, where there is one."""
        marked = np.zeros(len(self.register), dtype=np.bool_)
        for numbers in operations:
            marked[numbers[numbers != NO_INDEX]] = True
        return marked

    def decisive(self, values: Int64) -> Bool:
        """Of each register a fault if there is one, else the decisive operations of all of these values."""
        swaps = np.full(self.registers.registers, NO_INDEX, dtype=np.int64)
        of_cas = np.flatnonzero(self.registers.f >= CAS)
        last_to_first = of_cas[np.argsort(-self.registers.start[of_cas])]
        swaps[self.register[last_to_first]] = last_to_first
        ambiguous, unwritten, late = self.registers.ambiguous, self.clusters.unwritten, self.chains.late
        before = np.where(ambiguous == NO_INDEX, NO_INDEX, self.registers.writer[self.registers.value[ambiguous]])
        faulty = (swaps != NO_INDEX) | (ambiguous != NO_INDEX) | (unwritten != NO_INDEX) | (late[:, 0] != NO_INDEX)
        faults = self.marked(ambiguous, before, unwritten, late[:, 0], late[:, 1])
        faults &= (swaps == NO_INDEX)[self.register]
        writes = self.registers.writer[values]
        writes = writes[(writes != NO_INDEX) & self.registers.happened[writes]]
        decisive = self.marked(writes, self.clusters.first_read[values], self.clusters.last_read[values])
        return np.asarray(faults | self.marked(swaps) | (decisive & ~faulty[self.register]))


def _seen(recorded: RegisterOperations, initial: int) -> _Seen:
    registers = recorded.registers(initial)
    known = clusters(registers)
    chained = chains(registers, known)
    return _Seen(
        register=recorded.register,
        registers=registers,
        clusters=known,
        chains=chained,
        zones=zones(registers, chained),
    )


def decisive_zones(found: Zones, count: int) -> Bool:
    """Which zones show all that the others could, wherever the zones before and behind them are."""
    decisive: Bool = _ends(found.owner, found.high, found.forward, count)
    pairs = crossed(found, count)
    decisive[pairs[pairs[:, 0] != NO_INDEX].ravel()] = True
    return decisive


@compiled
def _ends(owner: Int64, high: Int64, forward: Bool, count: int) -> Bool:
    """The first and last forward zone of each register, the backward ones that are over first before and behind."""
    decisive = np.zeros(len(owner), dtype=np.bool_)
    last = np.full(count, -1, dtype=np.int64)
    least = np.full(count, -1, dtype=np.int64)
    for zone in range(len(owner)):
        r = owner[zone]
        if not forward[zone]:
            if least[r] < 0 or high[zone] < high[least[r]]:
                least[r] = zone
            continue
        if last[r] < 0:
            decisive[zone] = True
            if least[r] >= 0:
                decisive[least[r]] = True
        last[r] = zone
        least[r] = -1
    for r in range(count):
        for zone in (last[r], least[r]):
            if zone >= 0:
                decisive[zone] = True
    return decisive
