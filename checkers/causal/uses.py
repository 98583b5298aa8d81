"""Values of registers: their writes, their reads, and reads that no write explains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.elements.rows import KEY, SPANS, ElementGroups, element_groups
from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int64
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.transactions.history.micro_operations import R, W, micro_operations
from harness.record.meaning import Meaning

USES = SPANS.set(SPANS.get_field_index("key"), pa.field("key", pa.string()))
"""One row for each write, whatever its outcome, and for each value that an ok transaction read. `key` is the register,
`element` the value. There may be as many registers as operations, so their names are not dictionary-encoded."""

OF_READS_WITHOUT_WRITES: Mapping[str, Meaning] = {
    "unexpected": Meaning(
        says="A value was read before anybody had tried to write it, or that nobody ever tried to write.",
        usually="Corrupt or misdirected data, values of an earlier run left behind, or a client that records what "
        "it did not send.",
    ),
    "aborted-read": Meaning(
        says="A value was read although its write had certainly failed.",
        usually="The write was reported as refused after it had been applied, or was not rolled back on every replica.",
    ),
}

WRITE, READ = range(2)

REGISTERS = pa.schema([USES.field("bucket"), pa.field("register", pa.string())])

REWRITTEN = "rewritten"
"""The tally of registers that may have been written more than once, with examples."""


def uses_of_registers(spans: pa.Table, *, buckets: int, initial: int = NONE) -> pa.Table:
    """Kernel over transactions: all writes, and what those that were ok read, in buckets of registers.

    No write is needed for a register to be null or `initial`.
    """
    parts = micro_operations(spans["txn"])
    kind = spans["type"].to_numpy()[parts.transaction]
    is_write = parts.f == W
    is_read = (parts.f == R) & (kind == OK) & (parts.value != initial)
    used = np.flatnonzero((is_write | is_read) & (parts.value != NONE))
    rows = pa.array(parts.transaction[used])
    register = registers(spans["key"].combine_chunks().take(rows), parts.key.take(pa.array(used)))
    columns = {
        "bucket": pa.array(bucket_of(mixed_column(register), buckets)),
        "key": register,
        "element": pa.array(parts.value[used]),
        "f": pa.array(np.where(is_write[used], WRITE, READ).astype(np.int8)),
        "position": pa.array(np.zeros(len(used), dtype=np.int32)),
    }
    return pa.Table.from_arrays(
        [columns[name] if name in columns else spans[name].combine_chunks().take(rows) for name in USES.names],
        schema=USES,
    )


def registers(keys: pa.Array, names: pa.Array) -> pa.Array:
    """The names of registers. If the operation has a key, the register's own one, if any, follows it."""
    return pc.coalesce(pc.binary_join_element_wise(keys, names, "/"), names, keys)


def unexplained_reads(uses: pa.Table) -> pa.Table:
    """Kernel over all uses of a bucket of registers."""
    groups = _groups(uses)
    writes, reads = groups.f == WRITE, groups.f == READ
    possible = writes & (groups.type != FAIL)
    read = groups.smallest(reads, groups.end)
    unexpected = read < groups.smallest(writes, groups.start)
    aborted = (groups.sizes(reads) > 0) & ~unexpected & (groups.sizes(possible) == 0)

    findings = Findings()
    groups.report(findings, "unexpected", unexpected, "was read before anybody had tried to write it")
    groups.report(findings, "aborted-read", aborted, "was read, although its write had certainly failed")
    first, second = _rewritten(groups, possible)
    examples = [
        Example(
            key=None,
            operations=tuple(sorted({int(groups.start[i]), int(groups.start[j])})),
            because=f"{groups.names[groups.key[i]]} as {groups.element[i]} and as {groups.element[j]}",
        )
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    examples.sort(key=lambda example: (example.operations, example.because))
    findings.tally(REWRITTEN, len(examples), examples[:EXAMPLES])
    return findings.table()


def rewritten_registers(uses: pa.Table) -> pa.Table:
    """Kernel over all uses of a bucket of registers: those that may have been written more than once, as REGISTERS."""
    groups = _groups(uses)
    first, _ = _rewritten(groups, (groups.f == WRITE) & (groups.type != FAIL))
    names = pa.array([groups.names[i] for i in groups.key[first].tolist()], pa.string())
    bucket = np.full(len(first), uses["bucket"][0].as_py() if len(uses) else 0, dtype=np.int32)
    return pa.Table.from_arrays([pa.array(bucket), names], schema=REGISTERS)


def _groups(uses: pa.Table) -> ElementGroups:
    at = uses.schema.get_field_index("key")
    return element_groups(uses.set_column(at, SPANS.field("key"), uses["key"].cast(KEY)))


def _rewritten(groups: ElementGroups, possible: Bool) -> tuple[Int64, Int64]:
    """The first two writes of each register that may have been written more than once."""
    rows = np.flatnonzero(possible)
    rows = rows[np.lexsort((groups.start[rows], groups.key[rows]))]
    second = np.flatnonzero(groups.key[rows[1:]] == groups.key[rows[:-1]]) + 1
    second = second[np.unique(groups.key[rows[second]], return_index=True)[1]]
    return rows[second - 1], rows[second]
