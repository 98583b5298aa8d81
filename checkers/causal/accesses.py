"""What operations read and wrote of registers, as columns: reads that can be judged, and all writes."""

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
    """What to call the register of each read."""
    ambiguous: int
    """How many reads are left out, because what they show may have been written more than once."""
    writes: Writes

    @classmethod
    def of(cls, table: pa.Table, thing: Int64, session: Int64, is_ok: Bool, initial: int) -> Accesses:
        """`table`: SPANS, by object and session; by its rows `thing`, the number of the object, and `session`."""
        parts = micro_operations(table["txn"])
        names = pc.dictionary_encode(parts.key).indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        node = parts.transaction
        register = dense(thing[node], names)
        writes = np.flatnonzero((parts.f == W) & (parts.value != NONE))
        asked = np.flatnonzero((parts.f == R) & is_ok[node])
        own = np.isin(dense(node, register)[asked], dense(node, register)[writes])
        reads = asked[~own]
        reads = reads[np.lexsort((parts.value[reads], register[reads], node[reads]))]
        reads = reads[run_starts(node[reads], register[reads], parts.value[reads])]

        of_value = dense(register, parts.value)
        by_value = writes[np.lexsort((node[writes], of_value[writes]))]
        by_value = by_value[run_starts(of_value[by_value], node[by_value])]
        writers = np.bincount(of_value[by_value], minlength=len(of_value) + 1)
        writer_of = np.full(len(of_value) + 1, INITIAL, dtype=np.int64)
        writer_of[of_value[by_value]] = node[by_value]
        untouched = (parts.value[reads] == NONE) | (parts.value[reads] == initial)
        tried = writers[of_value[reads]]
        ambiguous = tried + untouched > 1
        reads = reads[~ambiguous & (untouched | (tried == 1))]
        keys = table["key"].combine_chunks().take(pa.array(node[reads]))
        return cls(
            reads=Reads(node[reads], register[reads], writer_of[of_value[reads]]),
            label=registers(keys, parts.key.take(pa.array(reads))),
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


def dense(first: Int64, second: Int64) -> Int64:
    """A number for each pair, ascending with the pairs, without gaps."""
    order = np.lexsort((second, first))
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[order] = np.cumsum(run_starts(first[order], second[order])) - 1
    return numbers
