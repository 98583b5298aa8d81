"""Cycles of a small graph in which no RW edge follows another, found by trying all cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int8, Int32
from checkers.transactions.elle.graph.shortest_cycles import Patience
from checkers.transactions.elle.graph.strong_components import KIND_BITS, KIND_MASK, PROCESS, REALTIME, RW, Graph
from harness.compiled import compiled, inlined


class _Between(NamedTuple):
    """The edges of a small graph."""

    other: Int8
    """int8[transactions, transactions]: the kind of the edge from row to column that is not RW; -1 if there is none."""
    anti: Bool
    """bool[transactions, transactions]: whether there is an RW edge from row to column."""


class _Tried(NamedTuple):
    """A path that is being tried, by places."""

    kinds: Int8
    cycle: Int32
    step: Int32
    """int32[transactions]: the next step to try from each place; y is an edge to y that is not RW, transactions + y an
    RW edge to y."""
    on: Bool
    """bool[transactions]: whether the path passes each of them."""


@compiled
def any_nonadjacent(
    graph: Graph, source: Int32, entry: Int32, allowed: int, patience: Patience, kinds: Int8, cycle: Int32
) -> tuple[int, bool]:
    """The shortest such cycle that begins with one of the given RW edges and goes on with allowed ones: (its length, or
    0 if none was found; whether there may be one all the same). Its kinds and transactions are written to `kinds` and
    `cycle`.

    T0 ──RW──► T1 ──WR──► T2 ──RW──► T3 ──WW──► T0
               └────RW────────────────▲               begin T0 ──RW──►: T0 T1 T3 has two RW edges in a row, T0 T1 T2
                                                      does not come back to T0; T0 T1 T2 T3 is a cycle of length 4
    """
    nodes = len(graph.start)
    between = _Between(np.full((nodes, nodes), -1, dtype=np.int8), np.zeros((nodes, nodes), dtype=np.bool_))
    _fill(graph, allowed, between)
    tried = _Tried(kinds, cycle, np.empty(nodes, dtype=np.int32), np.zeros(nodes, dtype=np.bool_))
    steps = 0
    for length in range(3, nodes + 1):
        for i in range(len(source)):
            tried.on[:] = False
            cycle[0], cycle[1], kinds[0] = source[i], entry[i] >> KIND_BITS, RW
            closed, steps = _closed(between, tried, length, steps, patience.steps)
            if closed:
                return length, False
            if steps > patience.steps:
                return 0, True
    return 0, False


@inlined
def _fill(graph: Graph, allowed: int, between: _Between) -> None:
    nodes = len(graph.start)
    for x in range(nodes):
        for y in range(nodes):
            if graph.end[x] < graph.start[y]:
                if allowed >> PROCESS & 1 and graph.process[x] == graph.process[y]:
                    between.other[x, y] = PROCESS
                elif allowed >> REALTIME & 1:
                    between.other[x, y] = REALTIME
        for j in range(graph.first[x], graph.first[x + 1]):
            kind, y = graph.entries[j] & KIND_MASK, graph.entries[j] >> KIND_BITS
            if kind == RW:
                between.anti[x, y] = True
            elif kind != PROCESS:
                between.other[x, y] = kind


@inlined
def _closed(between: _Between, tried: _Tried, length: int, steps: int, most: int) -> tuple[bool, int]:
    """(whether a path of this length that begins as `tried` does can be closed, how many steps were made so far). If it
    can, `tried` is that path. Gives up after more than `most` steps."""
    nodes = len(tried.on)
    start = tried.cycle[0]
    tried.on[start] = tried.on[tried.cycle[1]] = True
    tried.step[1] = 0
    depth = 1
    while depth:
        x = tried.cycle[depth]
        if depth == length - 1:
            if between.other[x, start] >= 0:
                tried.kinds[depth] = between.other[x, start]
                return True, steps
            tried.step[depth] = 2 * nodes
        steps += 1
        if steps > most:
            return False, steps
        step = _possible_step(between, tried, depth)
        if step == 2 * nodes:
            tried.on[x] = False
            depth -= 1
            continue
        y = step % nodes
        tried.kinds[depth] = RW if step >= nodes else between.other[x, y]
        tried.step[depth] = step + 1
        depth += 1
        tried.cycle[depth], tried.on[y], tried.step[depth] = y, True, 0
    return False, steps


@inlined
def _possible_step(between: _Between, tried: _Tried, depth: int) -> int:
    """The next possible step from the path's last place; twice the number of transactions if none is left."""
    nodes = len(tried.on)
    x = tried.cycle[depth]
    step: int = tried.step[depth]
    while step < 2 * nodes:
        y = step % nodes
        follows_rw = tried.kinds[depth - 1] == RW
        if not tried.on[y] and (between.anti[x, y] and not follows_rw if step >= nodes else between.other[x, y] >= 0):
            break
        step += 1
    return step
