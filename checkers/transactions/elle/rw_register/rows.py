"""What transactions do to registers: one row for each read and each write, in buckets of keys."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import Findings
from checkers.kernels.columns import NONE, Int8, Int64, whole
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.transactions.history.key_rows import KEY_ROWS, with_findings
from checkers.transactions.history.micro_operations import R, W
from checkers.transactions.history.micro_rows import NOTHING, refused
from harness.compiled import compiled


class RegisterRole(IntEnum):
    """What a micro-operation is within its transaction."""

    READ = 0
    """A read of a key that the transaction had not written."""
    CONTRADICTION = 1
    """A read of a key that the transaction had written, which shows something else."""
    WRITE = 2
    """The transaction's last write of its key."""
    INNER_WRITE = 3
    """A write after which the transaction writes the key again."""
    MALFORMED = 4
    """A micro-operation that means nothing here; `value` is a position in MALFORMATIONS."""


ROWS = KEY_ROWS
"""All writes, and the reads of ok transactions, without reads of what the transaction itself wrote last. The `value` of
the initial version is NONE."""

MALFORMATIONS = (
    "is neither r nor w",
    "has no key",
    "writes null, which is what {key} is before any write",
    "reads a list, where {key} is a register",
    "writes a list, where {key} is a register",
)
_UNKNOWN, _KEYLESS, _NULL, _LIST, _LIST_WRITTEN = range(len(MALFORMATIONS))


def rows_with_findings(micro: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over MICRO_ROWS: ROWS, and with them findings about what is not a transaction."""
    findings = Findings()
    refused(findings, micro)
    return with_findings(register_rows(micro, buckets=buckets), findings.table())


def register_rows(rows: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over MICRO_ROWS: ROWS."""
    f, value = (whole(rows[name]).to_numpy() for name in ("f", "value"))
    encoded = whole(rows["key"])
    keys = len(encoded.dictionary)
    key = pc.fill_null(encoded.indices, keys).to_numpy(zero_copy_only=False).astype(np.int64)
    role = _roles(whole(rows["start"]).to_numpy(), f, key, keys + 1, value)
    reason = np.full(len(f), -1, dtype=np.int64)
    if rows["values"].null_count < len(f):
        listed = pc.is_valid(whole(rows["values"])).to_numpy(zero_copy_only=False)
        reason[(f == R) & listed] = _LIST
        reason[(f == W) & listed] = _LIST_WRITTEN
    reason[(f == W) & (value == NONE) & (reason < 0)] = _NULL
    reason[key == keys] = _KEYLESS
    reason[(f != R) & (f != W)] = _UNKNOWN
    malformed = (reason >= 0) & (f > NOTHING)
    role[reason >= 0] = -1
    role[malformed] = RegisterRole.MALFORMED

    used = np.flatnonzero(role >= 0)
    columns = {name: whole(rows[name]).to_numpy()[used] for name in ("type", "start", "end", "process", "place")}
    columns |= {"role": role[used], "value": np.where(malformed, reason, value)[used]}
    columns["bucket"] = bucket_of(mixed_column(encoded), buckets)[used]
    arrays = {name: pa.array(column) for name, column in columns.items()}
    arrays["key"] = encoded.take(pa.array(used)).cast(pa.string())
    return pa.Table.from_arrays([arrays[name] for name in ROWS.names], schema=ROWS)


@compiled
def _roles(start: Int64, f: Int8, key: Int64, keys: int, value: Int64) -> Int8:
    """The role of each micro-operation; -1 if it shows nothing that others wrote.

        in one transaction: r x = 1 · w x 2 · r x = 2 · r x = 1

    These are a READ, a WRITE, -1, and a CONTRADICTION.
    """
    role = np.full(len(start), -1, dtype=np.int8)
    # By key: its last write; one before `begin` belongs to another transaction.
    last = np.full(keys, -1, dtype=np.int64)
    begin = 0
    for i in range(len(start)):
        if i > 0 and start[i] != start[i - 1]:
            begin = i
        own = last[key[i]]
        if f[i] == W:
            role[i] = RegisterRole.WRITE
            if own >= begin:
                role[own] = RegisterRole.INNER_WRITE
            last[key[i]] = i
        elif own < begin:
            role[i] = RegisterRole.READ
        elif value[own] != value[i]:
            role[i] = RegisterRole.CONTRADICTION
    return role
