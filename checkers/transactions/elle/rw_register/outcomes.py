"""All that concerns one register, in one pass: contradictions of its reads, the edges, and the writer of each read."""

from __future__ import annotations

import pyarrow as pa

from checkers.transactions.elle.outcomes import outcome
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies, edges_of
from checkers.transactions.elle.rw_register.precedences import Assumed
from checkers.transactions.elle.rw_register.register_findings import findings_of, findings_of_reads
from checkers.transactions.elle.rw_register.resolution import Registers, resolved_of
from checkers.transactions.history.key_rows import without_findings


def register_outcomes(rows: pa.Table, *, assumed: Assumed, buckets: int) -> pa.Table:
    """Kernel over all ROWS of a bucket, and over findings that came with them: BUNDLES."""
    bucket = rows["bucket"][0].as_py()
    rows, along = without_findings(rows)
    registers = Registers.of(rows)
    dependencies = RegisterDependencies.of(registers, assumed)
    return outcome(
        findings=pa.concat_tables([along, findings_of(rows, dependencies)]),
        edges=edges_of(dependencies),
        resolved=resolved_of(registers, bucket, buckets),
    )


def register_reads(rows: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over the same rows, where no dependencies are asked for: BUNDLES without links."""
    bucket = rows["bucket"][0].as_py()
    rows, along = without_findings(rows)
    registers = Registers.of(rows)
    return outcome(
        findings=pa.concat_tables([along, findings_of_reads(rows, registers)]),
        resolved=resolved_of(registers, bucket, buckets),
    )
