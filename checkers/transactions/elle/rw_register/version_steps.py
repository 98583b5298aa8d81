"""The steps by which assumptions order versions, for certificates of cycles.

The reasons for edges and for cycles of versions are dropped where these are inferred, and found again for the few that
certificates show.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import NONE, Int64
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.reasons import first_reasons
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies
from checkers.transactions.elle.rw_register.precedences import Assumed, Precedences
from checkers.transactions.elle.rw_register.reasons import near_dependencies
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.version_orders import inferred_orders

VERSION_STEPS = pa.schema(
    [
        pa.field("kind", pa.int8()),
        pa.field("source", pa.int64()),
        pa.field("target", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("before", pa.int64()),
        pa.field("after", pa.int64()),
        pa.field("because", pa.int8()),
        pa.field("earlier", pa.int64()),
        pa.field("later", pa.int64()),
    ]
)
"""Version `before` of the key (null: the initial one) precedes `after`, because of `because`, an OrderedBy, as the
transactions invoked at `earlier` and `later` show. These are the same if one transaction shows it, and null if none is
needed. `kind`, `source` and `target` are those of an edge in EDGES; a WR edge has only these and the key. In a cycle of
versions `source` is the number of the step."""


def edge_steps(rows: pa.Table, *, wanted: pa.Table, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket: VERSION_STEPS, at most one for each wanted edge."""
    dependencies, chosen = near_dependencies(rows, wanted, assumed)
    follows = dependencies.order[chosen] >= 0
    ordered = dependencies.inferred.orders.part(dependencies.order[chosen[follows]])
    columns = _columns(dependencies.registers, dependencies.inferred.versions.row, ordered)
    nothing = [pa.nulls(int(np.count_nonzero(~follows)), column.type) for column in columns]
    parts = [
        pa.Table.from_arrays([*_edges(dependencies, some), *behind], schema=VERSION_STEPS)
        for some, behind in ((chosen[follows], columns), (chosen[~follows], nothing))
    ]
    return first_reasons(pa.concat_tables(parts))


def _edges(dependencies: RegisterDependencies, some: Int64) -> list[pa.Array]:
    """The columns from `kind` to `key`."""
    registers, source = dependencies.registers, dependencies.source[some]
    return [
        pa.array(dependencies.kind[some]),
        pa.array(registers.start[source]),
        pa.array(registers.start[dependencies.target[some]]),
        registers.names.take(pa.array(registers.key[source])),
    ]


def cycle_steps(rows: pa.Table, *, key: str, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket: VERSION_STEPS of the cycle of this key's versions, if it is in the bucket."""
    registers = Registers.of(rows.filter(pc.equal(rows["key"], key)))
    inferred = inferred_orders(registers, assumed)
    if not inferred.cycles:
        return VERSION_STEPS.empty_table()
    _, orders = inferred.cycles[0]
    count = len(orders.before)
    number = np.arange(count, dtype=np.int64)
    arrays = [
        pa.array(np.full(count, Dependency.WW, dtype=np.int8)),
        pa.array(number),
        pa.array((number + 1) % count),
        pa.array([key] * count),
        *_columns(registers, inferred.versions.row, orders),
    ]
    return pa.Table.from_arrays(arrays, schema=VERSION_STEPS)


def _columns(registers: Registers, written: Int64, orders: Precedences) -> list[pa.Array]:
    """The columns from `before` to `later`."""
    return [
        _values(registers.value, written[orders.before]),
        _values(registers.value, written[orders.after]),
        pa.array(orders.evidence),
        _values(registers.start, orders.before_row),
        _values(registers.start, orders.after_row),
    ]


def _values(column: Int64, rows: Int64) -> pa.Array:
    """The values of these rows; null for row -1 and for NONE."""
    if not len(column):
        return pa.nulls(len(rows), pa.int64())
    values = column[np.maximum(rows, 0)]
    return pa.array(values, mask=(rows < 0) | (values == NONE))
