"""What certainly comes before what, as a graph: its topological order, or a short cycle in it.

Nodes are the transactions and, behind them, joints: each stands for a set of transactions that come before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.kernels.gap_filling import next_place, require_filled
from checkers.transactions.orders.weak.accesses import Accesses
from harness.compiled import compiled, inlined

VISITS = 20_000_000
"""The most edges that are looked at to find a cycle that is shorter than the first one."""


class Base(Enum):
    """What comes first besides what is forced. Known orders of versions (KNOWN) are always part of it."""

    READS = "reads"
    READS_AND_SESSIONS = "reads and sessions"


@dataclass(frozen=True, kw_only=True)
class Forced:
    """Rows `source` before `target`. A target of INITIAL, which comes before all, is a contradiction."""

    source: Int32
    target: Int32
    joints: int = 0

    def part(self, chosen: Bool) -> Forced:
        assert not self.joints
        return Forced(source=self.source[chosen], target=self.target[chosen])

    def __add__(self, other: Forced) -> Forced:
        assert not other.joints
        return Forced(
            source=np.concatenate((self.source, other.source)),
            target=np.concatenate((self.target, other.target)),
            joints=self.joints,
        )


NOTHING = Forced(source=np.zeros(0, dtype=np.int32), target=np.zeros(0, dtype=np.int32))


class Successors(NamedTuple):
    """The successors of node n are `target[first[n]:first[n + 1]]`."""

    first: Int64
    """int64[nodes + 1]"""
    target: Int32

    @classmethod
    def of(cls, source: Int32, target: Int32, nodes: int) -> Successors:
        first, targets = followers(source, target, nodes)
        return cls(first=first, target=targets)

    @classmethod
    def none(cls, nodes: int) -> Successors:
        """No successors of any node. It takes no memory, because nothing is ever written into it."""
        return cls(first=np.zeros(nodes + 1, dtype=np.int64), target=np.zeros(0, dtype=np.int32))

    @classmethod
    def base(cls, accesses: Accesses, base: Base) -> Successors:
        rows = accesses.committed
        before = accesses.before if base is Base.READS_AND_SESSIONS else accesses.before[:0]
        first, targets = _base(rows.first, rows.writer, before, rows.version_edges)
        return cls(first=first, target=targets)


@compiled
def _base(op_first: Int64, writer: Int32, before: Int32, version_edges: Int32) -> tuple[Int64, Int32]:
    """`before` may be empty."""
    nodes = len(op_first) - 1
    first = np.zeros(nodes + 1, dtype=np.int64)
    for i in range(len(writer)):
        if writer[i] > 0:
            first[writer[i] + 1] += 1
    for u in before:
        if u > 0:
            first[u + 1] += 1
    for i in range(len(version_edges)):
        if version_edges[i, 1] > 0:
            first[version_edges[i, 1] + 1] += 1
    first = np.cumsum(first)
    filled = first[:-1].copy()
    target = np.empty(first[nodes], dtype=np.int32)
    for t in range(nodes):
        for i in range(op_first[t], op_first[t + 1]):
            if writer[i] > 0:
                target[next_place(filled, first, writer[i])] = t
    for t in range(len(before)):
        if before[t] > 0:
            target[next_place(filled, first, before[t])] = t
    for i in range(len(version_edges)):
        if version_edges[i, 1] > 0:
            target[next_place(filled, first, version_edges[i, 1])] = version_edges[i, 2]
    require_filled(filled, first)
    return first, target


def ordered(base: Successors, forced: Successors, transactions: int) -> Int32:
    """A topological order of the nodes, with transactions as close to the order of their numbers as possible. Nodes in
    cycles, and all nodes behind them, are left out."""
    return _ordered(base, forced, transactions)


@compiled
def _ordered(base: Successors, forced: Successors, transactions: int) -> Int32:
    first, target, more_first, more = base.first, base.target, forced.first, forced.target
    nodes = len(more_first) - 1
    waiting = np.zeros(nodes, dtype=np.int32)
    for node in target:
        waiting[node] += 1
    for node in more:
        waiting[node] += 1
    order = np.empty(nodes, dtype=np.int32)
    stack = np.empty(nodes, dtype=np.int32)
    done = 0
    for turn in range(nodes):
        if waiting[turn] != 0:
            continue
        stack[0], height = turn, 1
        while height:
            height -= 1
            node = stack[height]
            waiting[node] = -1
            order[done] = node
            done += 1
            if node < transactions:
                for i in range(first[node], first[node + 1]):
                    other = target[i]
                    waiting[other] -= 1
                    if waiting[other] == 0 and other < turn:
                        stack[height] = other
                        height += 1
            for i in range(more_first[node], more_first[node + 1]):
                other = more[i]
                waiting[other] -= 1
                if waiting[other] == 0 and (other < turn or other >= transactions):
                    stack[height] = other
                    height += 1
    return order[:done]


def cycle(base: Successors, forced: Successors, transactions: int, order: Int32) -> Int32:
    """A short cycle of transactions that `ordered` has left out: each comes before the next, the last before the
    first. Joints do not count towards its length and are not named."""
    left = np.ones(len(forced.first) - 1, dtype=np.bool_)
    left[order] = False
    nodes = _cycle(base, forced, transactions, left, VISITS)
    return nodes[nodes < transactions]


class _Search(NamedTuple):
    """A breadth-first search that counts transactions: a joint is looked at along with the transaction that leads
    there."""

    transactions: int
    left: Bool
    """bool[nodes]: whether a node is left out of the order. Only such nodes are looked at."""
    met: Int32
    """int32[nodes]: the last beginning from which each node was reached, or -1."""
    parent: Int32
    """int32[nodes]: the node from which it was reached then."""
    queue: Int32
    """int32[2, nodes]: row `distance & 1` has the nodes that are `distance` transactions away; the other row has those
    that are one more away."""


@compiled
def _cycle(base: Successors, forced: Successors, transactions: int, left: Bool, visits: int) -> Int32:
    """Nodes of a short cycle.

    T0 ──► T1 ──► T2 ──► T3 ──► T0      T2 ──► T1        all four are left out of the order;

    going back from T0 by way of T3, T2 and T1 ends in a cycle, at T0; the shortest one there has four transactions;
    then from T1: T1 T2, of two, and none is shorter
    """
    nodes = len(left)
    search = _Search(
        transactions,
        left,
        np.full(nodes, -1, dtype=np.int32),
        np.empty(nodes, dtype=np.int32),
        np.empty((2, nodes), dtype=np.int32),
    )
    on_cycle = _on_a_cycle(base, forced, transactions, left)
    best = np.empty(0, dtype=np.int32)
    shortest, begin, candidate = transactions + 1, on_cycle, 0
    while True:
        last, length, looked_at = _closed(base, forced, search, begin, shortest)
        visits -= looked_at
        if last >= 0:
            shortest = length
            best = _traced(search.parent, begin, last)
        while candidate < transactions and not (left[candidate] and candidate != on_cycle):
            candidate += 1
        if shortest <= 2 or visits < 0 or candidate >= transactions:
            return best
        begin = candidate
        candidate += 1


@compiled
def _on_a_cycle(base: Successors, forced: Successors, transactions: int, left: Bool) -> int:
    """A transaction on a cycle. Each node that is left out has a predecessor that is left out too, so going back from
    one to the next ends in a cycle."""
    nodes = len(left)
    blamed = np.full(nodes, -1, dtype=np.int32)
    for node in range(nodes - 1, -1, -1):
        if not left[node]:
            continue
        if node < transactions:
            for i in range(base.first[node], base.first[node + 1]):
                blamed[base.target[i]] = node
        for i in range(forced.first[node], forced.first[node + 1]):
            blamed[forced.target[i]] = node
    at = np.flatnonzero(left)[0]
    passed = np.zeros(nodes, dtype=np.bool_)
    while not passed[at]:
        passed[at] = True
        at = blamed[at]
    while at >= transactions:
        at = blamed[at]
    return int(at)


@inlined
def _closed(
    base: Successors, forced: Successors, search: _Search, begin: int, shorter_than: int
) -> tuple[int, int, int]:
    """(the last node of a shortest cycle through `begin`, or -1 if none has fewer transactions than the one found so
    far; how many transactions it has; how many edges were looked at)."""
    search.queue[1, 0] = begin
    count, length, looked_at = 1, 1, 0
    while count and length < shorter_than:
        i = coming = 0
        while i < count:
            node = search.queue[length & 1, i]
            i += 1
            closes = False
            if node < search.transactions:
                looked_at += base.first[node + 1] - base.first[node]
                closes, count, coming = _expanded(base, search, begin, node, length, count, coming)
            if not closes:
                looked_at += forced.first[node + 1] - forced.first[node]
                closes, count, coming = _expanded(forced, search, begin, node, length, count, coming)
            if closes:
                return node, length, looked_at
        count = coming
        length += 1
    return -1, length, looked_at


@inlined
def _expanded(
    successors: Successors, search: _Search, begin: int, node: int, length: int, count: int, coming: int
) -> tuple[bool, int, int]:
    """Reaches the successors of a node, until one is where the search began: (whether one is, how many nodes are as far
    away now, how many are one transaction further)."""
    for i in range(successors.first[node], successors.first[node + 1]):
        other = successors.target[i]
        if other == begin:
            return True, count, coming
        if not search.left[other] or search.met[other] == begin:
            continue
        search.met[other], search.parent[other] = begin, node
        if other >= search.transactions:
            search.queue[length & 1, count] = other
            count += 1
        else:
            search.queue[(length + 1) & 1, coming] = other
            coming += 1
    return False, count, coming


@compiled
def _traced(parent: Int32, begin: int, last: int) -> Int32:
    size, node = 1, last
    while node != begin:
        size += 1
        node = parent[node]
    nodes = np.empty(size, dtype=np.int32)
    nodes[0], node = begin, last
    while node != begin:
        size -= 1
        nodes[size] = node
        node = parent[node]
    return nodes
