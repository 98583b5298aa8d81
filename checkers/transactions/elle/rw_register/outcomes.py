"""All that concerns one register in one pass: what its reads contradict, the edges, and who wrote what was read."""

from __future__ import annotations

import pyarrow as pa

from checkers.transactions.elle.outcomes import outcome
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies, edges_of
from checkers.transactions.elle.rw_register.precedences import Assumed
from checkers.transactions.elle.rw_register.register_findings import findings_of, findings_of_reads
from checkers.transactions.elle.rw_register.resolution import Registers, resolved_of
from checkers.transactions.history.key_rows import without_findings


def register_outcomes(rows: pa.Table, *, assumed: Assumed, buckets: int) -> pa.Table:
    """Kernel over all ROWS of a bucket, and findings that came along: BUNDLES."""
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
    """Kernel over the same, for who asks for no dependencies: BUNDLES without links."""
    bucket = rows["bucket"][0].as_py()
    rows, along = without_findings(rows)
    registers = Registers.of(rows)
    return outcome(
        findings=pa.concat_tables([along, findings_of_reads(rows, registers)]),
        resolved=resolved_of(registers, bucket, buckets),
    )
