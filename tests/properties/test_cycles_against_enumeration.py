"""Cycles of transactions are those that trying all finds, wherever the graph is cut, however its rows are split."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.api.plan import Engine
from checkers.api.verdict import EXAMPLES
from checkers.in_process.engine import InProcessEngine
from checkers.spark.engine import SparkEngine
from checkers.spark.java import JavaMissing, require_java
from checkers.spark.session import spark_session
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.graph.cycles import FAMILIES, NAMES, Cycle, Cycles, found_cycles, name_of
from checkers.transactions.elle.graph.search import PATIENCE, cycles, unit_cycles
from checkers.transactions.elle.graph.shortest_cycles import Patience
from checkers.transactions.elle.graph.small_cycles import any_nonadjacent
from checkers.transactions.elle.graph.strong_components import KIND_BITS, RW, WR, WW, graph_of
from checkers.transactions.elle.graph.subgraphs import Units, edges_of_units, nodes_of_units
from tests.references import transaction_graphs
from tests.references.thousands import thousands
from tests.references.transaction_graphs import (
    Transaction,
    Transactions,
    dataset,
    defined_counts,
    one_behind_the_other,
    random_graph,
    tables,
)

AT_ONCE = 20


def found(
    graph: Transactions, directory: Path, *, engine: Engine | None = None, pieces: int = 3, block: int = 16
) -> Cycles:
    engine = engine or InProcessEngine()
    nodes, edges = tables(graph)
    return cycles(
        engine,
        dataset(engine, nodes, directory / "nodes.parquet", pieces=pieces),
        dataset(engine, edges, directory / "edges.parquet", pieces=pieces),
        block=block,
    )


def counted(result: Cycles) -> dict[str, int]:
    return {name: of.count for name, of in result.found.items()}


def assert_is_cycle(cycle: Cycle, graph: Transactions) -> None:
    known = {(kind, graph.nodes[u].start, graph.nodes[v].start) for kind, u, v in graph.edges}
    by_start = {t.start: t for t in graph.nodes}
    for kind, source, target in cycle.edges:
        assert (kind, source, target) in known or by_start[source].before(by_start[target]) == kind
    assert [source for _, source, _ in cycle.edges[1:]] == [target for _, _, target in cycle.edges[:-1]]
    assert cycle.edges[-1][2] == cycle.edges[0][1] == min(cycle.transactions)
    assert len(set(cycle.transactions)) == len(cycle.edges)
    assert name_of([kind for kind, _, _ in cycle.edges]) == cycle.name


def alone(graph: Transactions, patience: Patience = PATIENCE) -> Cycles:
    """Without an engine."""
    whole = Units(
        block=graph.length,
        first=np.array([0]),
        at=np.array([0]),
        searched=np.array([True]),
        undecided=(),
        edges=len(graph.edges),
    )
    nodes, edges = tables(graph)
    rows = pa.concat_tables([edges_of_units(edges, units=whole), nodes_of_units(nodes, units=whole)])
    found = unit_cycles(rows.combine_chunks(), units=whole, patience=patience)
    return found_cycles(found, edges=whole.edges)


def random_graphs(seeds: range) -> list[Transactions]:
    return [random_graph(random.Random(seed)) for seed in seeds]


@thousands()
def test_graphs_have_the_names_that_trying_all_cycles_gives(seeds: range) -> None:
    names: Counter[str] = Counter()
    for first in seeds[::AT_ONCE]:
        some = random_graphs(range(first, first + AT_ONCE))
        defined: Counter[str] = sum(map(defined_counts, some), Counter())
        whole = one_behind_the_other(some)
        result = alone(whole)
        assert counted(result) == dict(defined), first
        assert not result.undecided
        for name, of in result.found.items():
            assert len(of.examples) == min(of.count, EXAMPLES)
            for cycle in of.examples:
                assert cycle.name == name
                assert_is_cycle(cycle, whole)
        names += defined
    assert len(names) > 12, names


@pytest.mark.parametrize("block", [1, 5, 64, 1 << 14])
def test_neither_cuts_nor_pieces_change_what_is_found(block: int, tmp_path: Path) -> None:
    graph = one_behind_the_other(random_graphs(range(150)))
    whole = alone(graph)
    assert whole.found
    assert found(graph, tmp_path, pieces=7, block=block) == whole


def test_a_unit_that_is_too_big_is_undecided_and_the_others_are_searched(tmp_path: Path) -> None:
    graph = one_behind_the_other(random_graphs(range(20)))
    nodes, edges = (
        dataset(InProcessEngine(), table, tmp_path / f"{number}.parquet") for number, table in enumerate(tables(graph))
    )
    some = cycles(InProcessEngine(), nodes, edges, block=8, unit_edges=4)
    assert some.found and len(some.undecided) > 1
    assert all("more than the 4 that memory is for" in reason for reason in some.undecided)
    assert sum(counted(some).values()) < sum(counted(alone(graph)).values())


def plain_ones(cycles: Cycles) -> int:
    """Strong components of dependencies alone. What is reported of wider ones depends on what is known of these."""
    return sum(count for name, count in counted(cycles).items() if name in FAMILIES)


def test_without_patience_every_component_still_has_a_name_and_what_may_be_missing_is_reported() -> None:
    impatient = Patience(beginnings=0, edges=0, steps=0)
    weaker = 0
    for first in range(0, 300, AT_ONCE):
        some = random_graphs(range(first, first + AT_ONCE))
        whole = one_behind_the_other(some)
        hasty, patient = alone(whole, impatient), alone(whole)
        weaker += counted(hasty) != counted(patient)
        assert plain_ones(hasty) == plain_ones(patient)
        assert all("given up" in reason for reason in hasty.undecided)
        assert hasty.undecided or counted(hasty) == counted(patient)
        for name, of in hasty.found.items():
            for cycle in of.examples:
                assert cycle.name == name
                assert_is_cycle(cycle, whole)
    assert weaker


def test_write_skew_in_one_session_breaks_the_session_too() -> None:
    """Snapshot isolation allows it, but where sessions count the later transaction sees the earlier one."""
    nodes = [Transaction(0, 1, 0), Transaction(2, 3, 0)]
    result = alone(Transactions(nodes, [(Dependency.RW, 0, 1), (Dependency.RW, 1, 0)], 4))
    assert counted(result) == {"G-single-item-process": 1, "G2-item": 1}


def test_a_cycle_is_found_that_a_shorter_way_of_another_kind_hides() -> None:
    """From 1 to 3 it is nearer by an RW edge, which may not follow the one from 0 to 1."""
    edges = [(RW, 0, 1), (WR, 1, 2), (RW, 1, 3), (RW, 2, 3), (WW, 3, 0)]
    numbers = np.arange(4, dtype=np.int32)

    def sought(edges: list[tuple[int, int, int]], patience: Patience) -> tuple[tuple[int, bool], Any, Any]:
        kind, source, target = (np.array(column, dtype=np.int32) for column in zip(*edges, strict=True))
        graph = graph_of(numbers, numbers + 9, numbers, source, target, kind.astype(np.int8))
        kinds, cycle = np.zeros(4, dtype=np.int8), np.zeros(4, dtype=np.int32)
        begun = np.array([1 << KIND_BITS | RW], dtype=np.int32)
        allowed = 1 << WW | 1 << WR | 1 << RW
        found = any_nonadjacent(graph, numbers[:1], begun, allowed, patience, kinds, cycle)
        return (int(found[0]), bool(found[1])), kinds.tolist(), cycle.tolist()

    assert sought(edges, PATIENCE) == ((4, False), [RW, WR, RW, WW], [0, 1, 2, 3])
    assert sought(edges, Patience(steps=0))[0] == (0, True)
    assert sought(edges[:-1], PATIENCE)[0] == (0, False)


@pytest.mark.parametrize("kinds", [(Dependency.WR, Dependency.WW), (Dependency.WW, Dependency.WR)])
def test_of_several_edges_between_two_transactions_the_lowest_counts(kinds: tuple[Dependency, ...]) -> None:
    numbers = np.arange(2, dtype=np.int32)
    source, target = np.array([0, 0, 1], dtype=np.int32), np.array([1, 1, 0], dtype=np.int32)
    graph = graph_of(numbers, numbers + 5, numbers, source, target, np.array([*kinds, Dependency.RW], dtype=np.int8))
    assert graph.first.tolist() == [0, 1, 2]
    assert graph.entries.tolist() == [1 << KIND_BITS | Dependency.WW, 0 << KIND_BITS | Dependency.RW]


def test_names_are_in_the_order_of_the_table() -> None:
    assert len(NAMES) == 15 and NAMES[0] == "G0" and NAMES[-1] == "G2-item-realtime"
    assert name_of([Dependency.RW, Dependency.WW, Dependency.RW, Dependency.PROCESS]) == "G-nonadjacent-item-process"
    assert name_of([Dependency.RW, Dependency.WW, Dependency.REALTIME, Dependency.RW]) == "G2-item-realtime"


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_both_engines_find_the_same_cycles(tmp_path: Path) -> None:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    graph = one_behind_the_other(random_graphs(range(100)))
    session = spark_session("local[2]")
    session.sparkContext.addPyFile(transaction_graphs.__file__)
    assert found(graph, tmp_path, engine=SparkEngine(session)) == alone(graph)
