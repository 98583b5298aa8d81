"""Why there are edges between transactions on registers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import NONE, Int64
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.reasons import positions_of, reasons_table, rows_of_wanted_keys
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies
from checkers.transactions.elle.rw_register.precedences import Assumed, OrderedBy
from checkers.transactions.elle.rw_register.resolution import Registers


def register_reasons(rows: pa.Table, *, wanted: pa.Table, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket: EDGE_REASONS, at most one for each wanted edge.

    The order of two versions is shown by the transaction that read the one and wrote the other, if that is assumed to
    order them. What follows from the order of transactions is shown by no single read. A WR edge is shown by the
    reader.
    """
    found, chosen = near_dependencies(rows, wanted, assumed)
    registers = found.registers
    of_source, of_target, order = (column[chosen] for column in (found.source, found.target, found.order))
    source, target = registers.start[of_source], registers.start[of_target]
    is_wr = found.kind[chosen] == Dependency.WR
    orders = found.inferred.orders
    evidence = np.where(is_wr, target, NONE)
    follows = ~is_wr
    follows[follows] = orders.evidence[order[follows]] == OrderedBy.WRITES_FOLLOW_READS
    evidence[follows] = registers.start[orders.before_row[order[follows]]]
    return reasons_table(
        kind=found.kind[chosen],
        source=source,
        target=target,
        key=registers.names.take(pa.array(registers.key[of_source])),
        value=registers.value[of_source],
        next_value=np.where(is_wr, NONE, registers.value[of_target]),
        evidence=evidence,
    )


def near_dependencies(rows: pa.Table, wanted: pa.Table, assumed: Assumed) -> tuple[RegisterDependencies, Int64]:
    """(the dependencies of all keys that ends of wanted edges touch, which of them are wanted)."""
    registers = Registers.of(rows_of_wanted_keys(rows, wanted))
    dependencies = RegisterDependencies.of(registers, assumed)
    source, target = registers.start[dependencies.source], registers.start[dependencies.target]
    return dependencies, np.flatnonzero(positions_of(wanted, dependencies.kind, source, target) >= 0)
