"""Why there are edges between transactions on registers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import NONE, Int64
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.reasons import EDGE_REASONS, first_reasons, positions_of
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.version_orders import Assumed, OrderedBy


def register_reasons(rows: pa.Table, *, wanted: pa.Table, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket: EDGE_REASONS, at most one for each wanted edge.

    What shows the order of two versions is the transaction that read the one and wrote the other, where that is
    assumed to mean something; no single read shows what follows from the order of transactions. What shows who read
    what is the reader.
    """
    told, chosen = near_dependencies(rows, wanted, assumed)
    registers = told.registers
    of_source, of_target, order = (column[chosen] for column in (told.source, told.target, told.order))
    source, target = registers.start[of_source], registers.start[of_target]
    is_wr = told.kind[chosen] == Dependency.WR
    orders = told.inferred.orders
    evidence = np.where(is_wr, target, NONE)
    follows = ~is_wr
    follows[follows] = orders.evidence[order[follows]] == OrderedBy.WRITES_FOLLOW_READS
    evidence[follows] = registers.start[orders.before_row[order[follows]]]
    columns = registers.value[of_source], np.where(is_wr, NONE, registers.value[of_target]), evidence
    return first_reasons(
        pa.Table.from_arrays(
            [
                pa.array(told.kind[chosen]),
                pa.array(source),
                pa.array(target),
                registers.names.take(pa.array(registers.key[of_source])),
                *(pa.array(column, mask=column == NONE) for column in columns),
            ],
            schema=EDGE_REASONS,
        )
    )


def near_dependencies(rows: pa.Table, wanted: pa.Table, assumed: Assumed) -> tuple[RegisterDependencies, Int64]:
    """(those of all keys that the ends of wanted edges have, which of them are wanted)."""
    ends = pa.array(np.concatenate([wanted[name].to_numpy() for name in ("source", "target")]))
    near = pc.unique(rows["key"].filter(pc.is_in(rows["start"], ends)))
    registers = Registers.of(rows.filter(pc.is_in(rows["key"], near)))
    told = RegisterDependencies.of(registers, assumed)
    source, target = registers.start[told.source], registers.start[told.target]
    return told, np.flatnonzero(positions_of(wanted, told.kind, source, target) >= 0)
