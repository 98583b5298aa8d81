"""Edges between transactions that follow from the order of each register's versions.

  WR  from the writer of a version to its readers
  WW  from the writer of a version to the writer of one behind it
  RW  from a reader of a version to the writer of one behind it

Of the versions behind a version only those that `version_orders` names count here; the rest follows by way of the
writers. An indefinite writer may not have happened; then nothing leads on from it.

If a version has many readers and many versions right behind it (in sane histories only an initial version without
assumptions), each reader gets edges to no more than NEAREST on either side of it. The missing edges are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import Int8, Int64, run_starts
from checkers.transactions.elle.edges import EDGES, Dependency, positions
from checkers.transactions.elle.rw_register.precedences import Assumed
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.rows import RegisterRole
from checkers.transactions.elle.rw_register.version_orders import InferredOrders, inferred_orders
from harness.compiled import compiled

DENSE = 64
"""The number of edges from each reader to writers above which some are left out."""

NEAREST = 32


@dataclass(frozen=True, kw_only=True)
class RegisterDependencies:
    registers: Registers
    inferred: InferredOrders
    kind: Int8
    source: Int64
    """The rows that edges lead from; those that they lead to are in `target`."""
    target: Int64
    order: Int64
    """The number of the inferred order that the edge follows from; -1 for WR."""
    missing: int
    """How many RW edges were left out."""

    @classmethod
    def of(cls, registers: Registers, assumed: Assumed) -> RegisterDependencies:
        inferred = inferred_orders(registers, assumed)
        versions, orders = inferred.versions, inferred.orders
        reads = np.flatnonzero(registers.role == RegisterRole.READ)
        reads = reads[versions.of_row[reads] >= 0]
        reads = reads[np.argsort(versions.of_row[reads], kind="stable")]
        reads = reads[run_starts(versions.of_row[reads], registers.start[reads])]
        writer = versions.row[versions.of_row[reads]]
        shown = np.flatnonzero(writer >= 0)

        of_order = np.flatnonzero(versions.row[orders.before] >= 0)
        readers = np.searchsorted(versions.of_row[reads], np.arange(len(versions) + 1))
        behind = np.searchsorted(orders.before, np.arange(len(versions) + 1))
        source, order, missing = _overwritten(
            readers, reads, registers.start, behind, registers.start[versions.row[orders.after]]
        )
        source, order = _once_a_key(registers, source, order, orders.after)
        parts = (
            (Dependency.WW, versions.row[orders.before[of_order]], versions.row[orders.after[of_order]], of_order),
            (Dependency.WR, writer[shown], reads[shown], np.full(len(shown), -1)),
            (Dependency.RW, source, versions.row[orders.after[order]], order),
        )
        return cls(
            registers=registers,
            inferred=inferred,
            kind=np.concatenate([np.full(len(part[1]), part[0], dtype=np.int8) for part in parts]),
            source=np.concatenate([part[1] for part in parts]),
            target=np.concatenate([part[2] for part in parts]),
            order=np.concatenate([part[3] for part in parts]),
            missing=int(missing),
        )


def _once_a_key(registers: Registers, source: Int64, order: Int64, after: Int64) -> tuple[Int64, Int64]:
    """A transaction that read several versions of a key gets one edge to each version that is behind some of them."""
    transaction = np.cumsum(run_starts(registers.key, registers.start))
    reads = np.sort(source)
    reads = reads[run_starts(reads)]
    if run_starts(transaction[reads]).all():
        return source, order
    by = np.lexsort((source, after[order], transaction[source]))
    first = np.sort(by[run_starts(transaction[source][by], after[order][by])])
    return source[first], order[first]


@compiled
def _overwritten(
    readers: Int64, reads: Int64, start: Int64, behind: Int64, after_start: Int64
) -> tuple[Int64, Int64, int]:
    """(rows of readers, numbers of orders, how many pairs are left out): all pairs of a read of a version and an order
    that puts another transaction's version behind it. Orders ascend by start for each version.

        T1 reads x = null · T2 writes x = 1 · T3 writes x = 2 · nothing is assumed

    The initial version precedes both others: T1 has an edge to T2 and one to T3.
    """
    count = 0
    missing = 0
    for fill in range(2):
        source = np.empty(count if fill else 0, dtype=np.int64)
        order = np.empty(count if fill else 0, dtype=np.int64)
        count = 0
        missing = 0
        for v in range(len(readers) - 1):
            mine, first, last = readers[v + 1] - readers[v], behind[v], behind[v + 1]
            dense = mine * (last - first) > DENSE * (mine + last - first)
            for i in range(readers[v], readers[v + 1]):
                low, high = first, last
                if dense:
                    at = first + np.searchsorted(after_start[first:last], start[reads[i]])
                    low, high = max(first, at - NEAREST), min(last, at + NEAREST)
                    missing += last - first - (high - low)
                for e in range(low, high):
                    if after_start[e] != start[reads[i]]:
                        if fill:
                            source[count] = reads[i]
                            order[count] = e
                        count += 1
    return source, order, missing


def register_edges(rows: pa.Table, *, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket: EDGES."""
    return edges_of(RegisterDependencies.of(Registers.of(rows), assumed))


def edges_of(found: RegisterDependencies) -> pa.Table:
    """The EDGES of these dependencies."""
    registers = found.registers
    position = positions(registers.start, registers.end, registers.type)
    return pa.Table.from_arrays(
        [
            pa.array(found.kind),
            pa.array(registers.start[found.source]),
            pa.array(position[found.source]),
            pa.array(registers.start[found.target]),
            pa.array(position[found.target]),
        ],
        schema=EDGES,
    )
