"""From dependencies between transactions to the cycles among them: the plan.

It claims that something is found exactly if dependencies, process order and realtime order have a cycle, and it counts
the strong components that each name explains. The components of a name are those of the edges that it allows: G0
allows WW, G1c also WR, the others also RW. A variant adds its order; realtime adds that of processes, too. The plain
variant has neither suffix, `-process` is less plain, and `-realtime` the least. A component counts

  - as G0 or G1c if none of its cycles has a stronger one of these names: G0 is stronger than G1c of the same or a less
    plain variant, and each name is stronger the plainer its variant is;
  - as the strongest of the names with RW that it has (G-single-item, then G-nonadjacent-item, then G2-item), unless one
    of its cycles is of a plainer variant of that name or of a stronger name with RW. In realtime order it does not
    count if a cycle of a plainer variant is G-nonadjacent-item, either: if there are no snapshots, there are none that
    keep an order.

So an anomaly is reported under the plainest name that explains it. Further anomalies are reported as well, even where
realtime order makes one component of the whole history. Of several dependencies between the same two transactions the
strongest counts, WW before WR before RW; process and realtime order between them count in addition.

It takes the transactions that may have been committed (NODES) and their dependencies (LINKS). It does not establish
that a history without cycles satisfies a model: dependencies that could not be inferred are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.api.plan import Dataset, Engine
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Bool, Int8, Int32, Int64, compact, run_starts
from checkers.transactions.elle.graph.cycles import (
    CYCLES,
    FAMILIES,
    NAMES,
    VARIANTS,
    Cycles,
    Witness,
    cycles_table,
    found_cycles,
    merged_cycles,
)
from checkers.transactions.elle.graph.shortest_cycles import Patience
from checkers.transactions.elle.graph.strong_components import (
    INDEFINITELY,
    KIND_BITS,
    KIND_MASK,
    ORDERS,
    RW,
    WW,
    Graph,
    graph_of,
    part,
    strong_components,
)
from checkers.transactions.elle.graph.subgraphs import (
    BLOCK,
    COMPLETED,
    UNIT_EDGES,
    UNIT_ROWS,
    Units,
    edges_of_units,
    nodes_of_units,
    units,
)
from checkers.transactions.elle.graph.witnesses import DEPENDENCIES, MISSED_NONADJACENT, MISSED_SINGLE, named
from harness.compiled import compiled

ANY = DEPENDENCIES | 1 << RW
BASES = (1 << WW, DEPENDENCIES, ANY)
"""Dependencies that names allow, as bits: G0, G1c, and all others."""

PATIENCE = Patience()

SETTLES = (-1, FAMILIES.index("G-single-item"), FAMILIES.index("G-nonadjacent-item"))
"""Each variant's weakest family that, found in a plainer variant, explains all other cycles with RW."""

MISSED = {MISSED_SINGLE: "G-single-item", MISSED_NONADJACENT: "G-nonadjacent-item"}


def cycles(
    engine: Engine, nodes: Dataset, edges: Dataset, *, block: int = BLOCK, unit_edges: int = UNIT_EDGES
) -> Cycles:
    """All cycles, by name. The result depends neither on `block` nor on how rows are split. Edges are read twice, so
    they should be kept in memory."""
    cut = units(engine, edges, block=block, limit=unit_edges)
    if not cut.searched.any():
        return Cycles(undecided=cut.undecided, edges=cut.edges)
    rows = engine.union(
        engine.mapped(edges, partial(edges_of_units, units=cut), UNIT_ROWS),
        engine.mapped(nodes, partial(nodes_of_units, units=cut), UNIT_ROWS),
    )
    found = engine.grouped(rows, ("unit",), partial(unit_cycles, units=cut), CYCLES)
    merged = engine.grouped(found, ("name",), merged_cycles, CYCLES)
    return found_cycles(engine.gather(merged, len(NAMES) * (EXAMPLES + 1)), cut.undecided, cut.edges)


def unit_cycles(rows: pa.Table, *, units: Units, patience: Patience = PATIENCE) -> pa.Table:
    """Kernel over all rows of a unit: CYCLES."""
    first = int(units.first[rows["unit"][0].as_py()])
    graph = _graph(rows)
    if graph is None:
        return CYCLES.empty_table()
    return graph_cycles(graph, first, patience)


def _graph(rows: pa.Table) -> Graph | None:
    """The graph of the transactions that back edges pass over; None if there are none."""
    kind, source, target = (rows[name].to_numpy() for name in ("kind", "source", "target"))
    is_node = kind < 0
    at = np.flatnonzero(is_node)
    covered = _covered(kind, source, target, int(source.max()) + 1)
    at = at[covered[source[at]]]
    if len(at) == 0:
        return None
    position = source[at]
    start = position - target[at]
    order = np.lexsort((position, start))
    at, position, start = at[order], position[order], start[order]
    number = np.full(len(covered), -1, dtype=np.int32)
    number[position] = np.arange(len(at), dtype=np.int32)
    end = np.where(kind[at] == COMPLETED, position, INDEFINITELY).astype(np.int32)
    process = compact(rows["process"].to_numpy()[at].astype(np.int64)).astype(np.int32)
    edge = np.flatnonzero(~is_node)
    u, v = number[source[edge]], number[target[edge]]
    there = (u >= 0) & (v >= 0)
    return graph_of(start, end, process, u[there], v[there], kind[edge][there])


@compiled
def _covered(kind: Int8, source: Int32, target: Int32, positions: int) -> Bool:
    """For each position, whether a back edge passes over it, or begins or ends there."""
    change = np.zeros(positions + 1, dtype=np.int32)
    for i in range(len(kind)):
        if kind[i] >= 0 and source[i] > target[i]:
            change[target[i]] += 1
            change[source[i] + 1] -= 1
    covered = np.empty(positions, dtype=np.bool_)
    passing = 0
    for p in range(positions):
        passing += change[p]
        covered[p] = passing > 0
    return covered


def graph_cycles(graph: Graph, first: int, patience: Patience) -> pa.Table:
    """CYCLES of one graph; `first` is added to `start` for the names of transactions."""
    tied = np.flatnonzero(strong_components(graph, ANY | ORDERS[-1], np.ones(len(graph.start), dtype=np.bool_)) >= 0)
    if len(tied) == 0:
        return CYCLES.empty_table()
    if len(tied) < len(graph.start):
        graph = part(graph, tied.astype(np.int32), np.full(len(graph.start), -1, dtype=np.int32))
    counts: dict[str, tuple[int, int]] = dict.fromkeys(NAMES, (0, 0))
    examples: dict[str, list[Witness]] = {}
    strongest = np.full(len(graph.start), len(FAMILIES), dtype=np.int8)
    for variant, allowed, members, bounds in _searched(graph, strongest):
        name, length, least, missed, kinds, transactions = named(graph, members, bounds, allowed, patience)
        reported = np.ones(len(name), dtype=np.bool_)
        if allowed & 1 << RW:
            reported = _strengthened(strongest, members, bounds, name // len(VARIANTS))
        for number in np.unique(name[reported]).tolist():
            mine = np.flatnonzero((name == number) & reported)
            _add(counts, NAMES[number], count=len(mine))
            for i in mine[np.lexsort((least[mine], length[mine]))[:EXAMPLES]].tolist():
                cycle = slice(bounds[i], bounds[i] + length[i])
                begun = graph.start[transactions[cycle]].astype(np.int64) + first
                turn = -int(np.argmin(begun))
                witness = np.roll(kinds[cycle], turn).tolist(), np.roll(begun, turn).tolist()
                examples.setdefault(NAMES[number], []).append(witness)
        for bit, family in MISSED.items():
            _add(counts, family + VARIANTS[variant], stopped=int(np.count_nonzero(missed & bit)))
    return cycles_table({name: counted for name, counted in counts.items() if any(counted)}, examples)


def _add(counts: dict[str, tuple[int, int]], name: str, *, count: int = 0, stopped: int = 0) -> None:
    counted, given_up = counts[name]
    counts[name] = counted + count, given_up + stopped


def _strengthened(strongest: Int8, members: Int32, bounds: Int64, family: Int8) -> Bool:
    """For each component, whether its family is stronger than all that were found inside it. Notes it in
    `strongest`."""
    if not len(family):
        return np.zeros(0, dtype=np.bool_)
    inside = np.minimum.reduceat(strongest[members], bounds[:-1])
    strongest[members] = np.repeat(np.minimum(inside, family), np.diff(bounds))
    return np.asarray(family < inside)


def _searched(graph: Graph, strongest: Int8) -> Iterator[tuple[int, int, Int32, Int64]]:
    """The strong components to search: (variant, allowed kinds as bits, transactions of all components one after the
    other, where each component begins). `strongest` has the strongest family with RW found so far for each
    transaction's component; it is read only when it is needed, because the caller updates it meanwhile."""
    component: dict[tuple[int, int], Int32] = {}
    for variant in reversed(range(len(ORDERS))):
        for base in reversed(range(len(BASES))):
            active = np.ones(len(graph.start), dtype=np.bool_)
            for wider in ((base, variant + 1), (base + 1, variant)):
                if wider in component:
                    active &= component[wider] >= 0
            component[base, variant] = strong_components(graph, BASES[base] | ORDERS[variant], active)
    none = np.zeros(len(graph.start), dtype=np.bool_)
    written, received = none, none
    for variant, order in enumerate(ORDERS):
        within = [component[base, variant] for base in range(len(BASES))]
        yield variant, BASES[0] | order, *_unexplained(within[0], written)
        written = within[0] >= 0
        yield variant, BASES[1] | order, *_unexplained(within[1], written | received)
        received = within[1] >= 0
        with_anti = _with_anti_dependencies(graph, within[2])[within[2]]
        settled = strongest <= SETTLES[variant]
        yield variant, BASES[2] | order, *_unexplained(np.where(with_anti, within[2], -1), settled)


def _unexplained(component: Int32, explained: Bool) -> tuple[Int32, Int64]:
    """(transactions, where each component begins) of the components none of whose transactions is explained."""
    known = np.zeros(int(component.max(initial=-1)) + 2, dtype=np.bool_)
    known[component[explained]] = True
    known[-1] = True
    members = np.flatnonzero(~known[component])
    members = members[np.argsort(component[members], kind="stable")]
    bounds = np.append(np.flatnonzero(run_starts(component[members])), len(members))
    return members.astype(np.int32), bounds


@compiled
def _with_anti_dependencies(graph: Graph, component: Int32) -> Bool:
    """For each component, and in the last place for -1, whether it has an RW edge."""
    first, entries = graph.first, graph.entries
    nodes = len(component)
    has = np.zeros(nodes + 1, dtype=np.bool_)
    for u in range(nodes):
        for i in range(first[u], first[u + 1]):
            v = entries[i] >> KIND_BITS
            if entries[i] & KIND_MASK == RW and component[u] >= 0 and component[u] == component[v]:
                has[component[u]] = True
    return has
