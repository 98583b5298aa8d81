"""Small graphs of transactions, and what cycles they have, by trying all."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.api.plan import Dataset, Engine
from checkers.kernels.columns import INFO, OK
from checkers.transactions.elle.edges import EDGES, NODES, Dependency
from checkers.transactions.history.committed import NEVER
from harness.record.history import history_schema

DATA = (Dependency.WW, Dependency.WR, Dependency.RW)
FAMILIES = {"G0": DATA[:1], "G1c": DATA[:2], "G-single-item": DATA, "G-nonadjacent-item": DATA, "G2-item": DATA}
ORDERS = {"": (), "-process": (Dependency.PROCESS,), "-realtime": (Dependency.PROCESS, Dependency.REALTIME)}


@dataclass(frozen=True)
class Transaction:
    start: int
    end: int
    process: int

    @property
    def position(self) -> int:
        return self.start if self.end == NEVER else self.end

    def before(self, other: Transaction) -> Dependency | None:
        if self.end >= other.start:
            return None
        return Dependency.PROCESS if self.process == other.process else Dependency.REALTIME


@dataclass(frozen=True)
class Transactions:
    nodes: list[Transaction]
    edges: list[tuple[Dependency, int, int]]
    length: int
    """History rows."""

    def steps(self) -> dict[tuple[int, int], list[Dependency]]:
        """How one may go from each to each: by the strongest dependency, or by an order."""
        result: dict[tuple[int, int], list[Dependency]] = {}
        for kind, u, v in sorted(self.edges):
            result.setdefault((u, v), [kind])
        for u, t in enumerate(self.nodes):
            for v, other in enumerate(self.nodes):
                order = t.before(other)
                if order is not None:
                    result.setdefault((u, v), []).append(order)
        return result


def random_graph(rng: random.Random, most: int = 7) -> Transactions:
    """Processes run one transaction after another; some never learn what became of one, and go on all the same."""
    count = rng.randint(2, most)
    processes = rng.choice([rng.randint(1, count), count])
    doubt = rng.choice([0.0, 0.2])
    nodes: list[Transaction] = []
    open_since: dict[int, int] = {}
    index = 0
    while len(nodes) < count:
        process = rng.randrange(processes)
        if process in open_since:
            nodes.append(Transaction(open_since.pop(process), NEVER if rng.random() < doubt else index, process))
        else:
            open_since[process] = index
        index += 1
    nodes.sort(key=lambda t: t.start)
    kinds = rng.choice(
        [
            DATA,
            DATA,
            (Dependency.WW, Dependency.RW),
            (Dependency.WR, Dependency.RW),
            (Dependency.RW,),
            (Dependency.WW,),
            (Dependency.WR, Dependency.WW),
        ]
    )
    edges = set()
    wanted = rng.randint(1, 2 * count)
    if count >= 4 and rng.random() < 0.4:
        edges = ring(rng, nodes)
        wanted = rng.randint(0, 3)
    for _ in range(wanted):
        u, v = rng.sample(range(count), 2)
        if nodes[u].position > nodes[v].position and rng.random() < 0.5:
            u, v = v, u
        edges.add((rng.choice(kinds), u, v))
    return Transactions(nodes, sorted(edges), index)


def ring(rng: random.Random, nodes: list[Transaction]) -> set[tuple[Dependency, int, int]]:
    """A cycle whose RW edges mostly lie apart, with an order between where there is one."""
    chosen = rng.sample(range(len(nodes)), len(nodes))
    pairs = [sorted((chosen.pop(), chosen.pop())) for _ in range(rng.randint(1, 2))]
    edges = set()
    for i, (u, v) in enumerate(pairs):
        if nodes[u].before(nodes[v]) is None or rng.random() < 0.2:
            edges.add((rng.choice(DATA[:2]), u, v))
        last = pairs[i - 1][1]
        if chosen and rng.random() < 0.3:
            between = chosen.pop()
            edges.add((Dependency.RW, last, between))
            last = between
        edges.add((Dependency.RW, last, u))
    return edges


def simple_cycles(
    steps: dict[tuple[int, int], list[Dependency]], nodes: list[int], allowed: tuple[Dependency, ...]
) -> Iterator[tuple[Dependency, ...]]:
    """The kinds of all cycles, each beginning at its smallest node."""
    following: dict[int, list[tuple[int, Dependency]]] = {u: [] for u in nodes}
    for (u, v), kinds in steps.items():
        if u in following and v in following:
            following[u] += [(v, kind) for kind in kinds if kind in allowed]

    def walk(begin: int, path: list[int], kinds: tuple[Dependency, ...]) -> Iterator[tuple[Dependency, ...]]:
        for v, kind in following[path[-1]]:
            if v == begin:
                yield (*kinds, kind)
            elif v > begin and v not in path:
                yield from walk(begin, [*path, v], (*kinds, kind))

    for u in nodes:
        yield from walk(u, [u], ())


def called(kinds: tuple[Dependency, ...]) -> tuple[str, str]:
    """(family, variant) of a cycle."""
    variant = "-realtime" if Dependency.REALTIME in kinds else "-process" if Dependency.PROCESS in kinds else ""
    anti = kinds.count(Dependency.RW)
    if anti == 0:
        return ("G1c" if Dependency.WR in kinds else "G0"), variant
    if anti == 1:
        return "G-single-item", variant
    adjacent = any(kinds[i] == kinds[i - 1] == Dependency.RW for i in range(len(kinds)))
    return ("G2-item" if adjacent else "G-nonadjacent-item"), variant


def explains(strong: tuple[str, str], weak: tuple[str, str]) -> bool:
    """Whether the first, where it is reported, makes a report of the second needless."""
    families, variants = list(FAMILIES), list(ORDERS)
    (family, variant), (other_family, other_variant) = [
        (families.index(name), variants.index(suffix)) for name, suffix in (strong, weak)
    ]
    if (family < 2) != (other_family < 2):
        return False
    if family == 3 and variant < other_variant == 2:
        return True  # Where there are no snapshots, there are none that keep realtime order.
    return strong != weak and family <= other_family and variant <= other_variant


def components(
    nodes: int, steps: dict[tuple[int, int], list[Dependency]], allowed: tuple[Dependency, ...]
) -> list[list[int]]:
    reach = [[u == v for v in range(nodes)] for u in range(nodes)]
    for (u, v), kinds in steps.items():
        reach[u][v] |= any(kind in allowed for kind in kinds)
    for w in range(nodes):
        for u in range(nodes):
            for v in range(nodes):
                reach[u][v] |= reach[u][w] and reach[w][v]
    together = {tuple(v for v in range(nodes) if reach[u][v] and reach[v][u]) for u in range(nodes)}
    return sorted(list(some) for some in together if len(some) > 1)


def defined_counts(graph: Transactions) -> Counter[str]:
    """Of each name the strong components that it explains."""
    steps = graph.steps()
    counts: Counter[str] = Counter()
    names: dict[tuple[int, ...], dict[tuple[Dependency, ...], set[tuple[str, str]]]] = {}
    for family, data in FAMILIES.items():
        for variant, order in ORDERS.items():
            allowed = (*data, *order)
            for component in components(len(graph.nodes), steps, allowed):
                known = names.setdefault(tuple(component), {})
                if allowed not in known:
                    known[allowed] = {called(kinds) for kinds in simple_cycles(steps, component, allowed)}
                mine = (family, variant)
                if mine in known[allowed] and not any(explains(other, mine) for other in known[allowed]):
                    counts[family + variant] += 1
    return counts


def one_behind_the_other(graphs: list[Transactions]) -> Transactions:
    nodes: list[Transaction] = []
    edges: list[tuple[Dependency, int, int]] = []
    length = 0
    for number, graph in enumerate(graphs):
        edges += [(kind, u + len(nodes), v + len(nodes)) for kind, u, v in graph.edges]
        nodes += [
            Transaction(t.start + length, NEVER if t.end == NEVER else t.end + length, t.process + 100 * number)
            for t in graph.nodes
        ]
        length += graph.length
    return Transactions(nodes, edges, length)


def tables(graph: Transactions) -> tuple[pa.Table, pa.Table]:
    """NODES and EDGES."""
    nodes = [(t.start, t.end, t.process, INFO if t.end == NEVER else OK) for t in graph.nodes]
    ends = [(kind, graph.nodes[u], graph.nodes[v]) for kind, u, v in graph.edges]
    edges = [(int(kind), t.start, t.position, other.start, other.position) for kind, t, other in ends]
    return table_of(nodes, NODES), table_of(edges, EDGES)


def table_of(rows: Sequence[tuple[int, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def dataset(engine: Engine, table: pa.Table, path: Path, *, pieces: int = 1) -> Dataset:
    """Its rows in an engine, in so many pieces."""
    rows = [
        {"index": i, "time": i, "process": 0, "type": "invoke", "f": "f", "key": None, "value": None}
        for i in range(pieces)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(pa.int64())), path, row_group_size=1)
    return engine.mapped(engine.history(path, ("index",)), partial(piece_of, table=table, pieces=pieces), table.schema)


def piece_of(batch: pa.Table, *, table: pa.Table, pieces: int) -> pa.Table:
    rows = table.num_rows
    return pa.concat_tables(
        [
            table.slice(rows * i // pieces, rows * (i + 1) // pieces - rows * i // pieces)
            for i in batch["index"].to_pylist()
        ]
    ).combine_chunks()
