"""Reads and writes of registers as columns: reads that can be judged, and all writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.causal.causality import INITIAL, Reads, Writes
from checkers.causal.uses import registers
from checkers.kernels.columns import NONE, Bool, Int64, run_starts
from checkers.transactions.history.micro_operations import R, W, micro_operations


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """Reads of what an operation did not write itself, and all writes."""

    reads: Reads
    label: pa.Array
    """The name of each read's register."""
    intermediate: Bool
    """By read: whether its writer wrote another value after the one that it shows."""
    contrary: Reads
    """Reads after a write of their own operation that show another value."""
    contrary_label: pa.Array
    ambiguous: int
    """How many reads are left out, because what they show may have been written more than once."""
    writes: Writes

    @classmethod
    def of(cls, table: pa.Table, thing: Int64, session: Int64, is_ok: Bool, initial: int) -> Accesses:
        """The accesses of SPANS sorted by object and session. `thing`, the number of the object, and `session` are by
        row."""
        parts = micro_operations(table["txn"])
        names = pc.dictionary_encode(parts.key).indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        node = parts.transaction
        register = dense(thing[node], names)
        writes = np.flatnonzero((parts.f == W) & (parts.value != NONE))
        asked = np.flatnonzero((parts.f == R) & is_ok[node])
        place = dense(node, register)
        written = last_before(place, writes, asked)
        reads, own = asked[written < 0], asked[written >= 0]
        held = np.where(parts.value == NONE, initial, parts.value)
        contrary = own[held[own] != held[written[written >= 0]]]
        reads = reads[np.lexsort((parts.value[reads], register[reads], node[reads]))]
        reads = reads[run_starts(node[reads], register[reads], parts.value[reads])]

        of_value = dense(register, parts.value)
        by_value = writes[np.lexsort((node[writes], of_value[writes]))]
        by_value = by_value[run_starts(of_value[by_value], node[by_value])]
        writers = np.bincount(of_value[by_value], minlength=len(of_value) + 1)
        writer_of = np.full(len(of_value) + 1, INITIAL, dtype=np.int64)
        writer_of[of_value[by_value]] = node[by_value]
        untouched = held[reads] == initial
        contrary = contrary[(held[contrary] == initial) | (writers[of_value[contrary]] > 0)]
        tried = writers[of_value[reads]]
        ambiguous = tried + untouched > 1
        reads = reads[~ambiguous & (untouched | (tried == 1))]
        is_final = np.zeros(len(of_value) + 1, dtype=np.bool_)
        backwards = len(place) - 1 - writes[::-1]
        is_final[of_value[writes[last_before(place[::-1], backwards, backwards)[::-1] < 0]]] = True
        shown = Reads(node[reads], register[reads], writer_of[of_value[reads]])

        def label(of: Int64) -> pa.Array:
            keys = table["key"].combine_chunks().take(pa.array(node[of]))
            return registers(keys, parts.key.take(pa.array(of)))

        return cls(
            reads=shown,
            label=label(reads),
            intermediate=(shown.writer != INITIAL) & ~is_final[of_value[reads]],
            contrary=Reads(node[contrary], register[contrary], writer_of[of_value[contrary]]),
            contrary_label=label(contrary),
            ambiguous=int(ambiguous.sum()),
            writes=_in_runs(register, node, writes, session),
        )


def _in_runs(register: Int64, node: Int64, writes: Int64, session: Int64) -> Writes:
    by_register = writes[np.lexsort((node[writes], register[writes]))]
    by_register = by_register[run_starts(register[by_register], node[by_register])]
    runs = np.flatnonzero(run_starts(register[by_register], session[node[by_register]]))
    return Writes(
        np.searchsorted(register[by_register[runs]], np.arange(int(register.max(initial=-1)) + 2)),
        np.append(runs, len(by_register)),
        node[by_register],
    )


def last_before(place: Int64, writes: Int64, reads: Int64) -> Int64:
    """For each of `reads` the last one of `writes` of the same place before it, -1 if there is none. All are positions,
    ascending."""
    far = len(place) + 1
    of_writes = place[writes] * far + writes
    order = np.argsort(of_writes)
    at = np.searchsorted(of_writes[order], place[reads] * far + reads) - 1
    if not len(writes):
        return np.full(len(reads), -1, dtype=np.int64)
    found = writes[order[np.maximum(at, 0)]]
    return np.where((at >= 0) & (place[found] == place[reads]), found, -1)


def dense(first: Int64, second: Int64) -> Int64:
    """A number for each pair, ascending with the pairs, without gaps."""
    order = np.lexsort((second, first))
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[order] = np.cumsum(run_starts(first[order], second[order])) - 1
    return numbers
