"""What certainly comes before what, as a graph: its topological order, or a short cycle in it.

Nodes are the transactions and, behind them, joints: each stands for a set of transactions that come before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.isolation.weak.accesses import Accesses
from harness.compiled import compiled

VISITS = 20_000_000
"""So many edges are looked at for a cycle that is shorter than the first one found."""


class Base(Enum):
    """What comes first beside what is forced. KNOWN orders of versions always do."""

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


@dataclass(frozen=True, kw_only=True)
class Successors:
    """Those of node n are `target[first[n]:first[n + 1]]`."""

    first: Int64
    target: Int32

    @classmethod
    def of(cls, source: Int32, target: Int32, nodes: int) -> Successors:
        first, targets = followers(source, target, nodes)
        return cls(first=first, target=targets)

    @classmethod
    def base(cls, accesses: Accesses, base: Base) -> Successors:
        rows = accesses.committed
        before = accesses.before if base is Base.READS_AND_SESSIONS else accesses.before[:0]
        first, targets = _base(rows.first, rows.writer, before, rows.known)
        return cls(first=first, target=targets)


@compiled
def _base(op_first: Int64, writer: Int32, before: Int32, known: Int32) -> tuple[Int64, Int32]:
    """`before` may be empty."""
    nodes = len(op_first) - 1
    first = np.zeros(nodes + 1, dtype=np.int64)
    for i in range(len(writer)):
        if writer[i] > 0:
            first[writer[i] + 1] += 1
    for u in before:
        if u > 0:
            first[u + 1] += 1
    for i in range(len(known)):
        if known[i, 1] > 0:
            first[known[i, 1] + 1] += 1
    first = np.cumsum(first)
    filled = first[:-1].copy()
    target = np.empty(first[nodes], dtype=np.int32)
    for t in range(nodes):
        for i in range(op_first[t], op_first[t + 1]):
            if writer[i] > 0:
                target[filled[writer[i]]] = t
                filled[writer[i]] += 1
    for t in range(len(before)):
        if before[t] > 0:
            target[filled[before[t]]] = t
            filled[before[t]] += 1
    for i in range(len(known)):
        if known[i, 1] > 0:
            target[filled[known[i, 1]]] = known[i, 2]
            filled[known[i, 1]] += 1
    return first, target


def ordered(base: Successors, forced: Successors, transactions: int) -> Int32:
    """Nodes, each behind all that come before it, transactions as close to their numbers' order as that allows; those
    in cycles, and all behind them, are left out."""
    return _ordered(base.first, base.target, forced.first, forced.target, transactions)


@compiled
def _ordered(first: Int64, target: Int32, more_first: Int64, more: Int32, transactions: int) -> Int32:
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
    first. Joints count nothing and are not named."""
    left = np.ones(len(forced.first) - 1, dtype=np.bool_)
    left[order] = False
    nodes = _cycle(base.first, base.target, forced.first, forced.target, transactions, left, VISITS)
    return nodes[nodes < transactions]


@compiled
def _cycle(
    first: Int64, target: Int32, more_first: Int64, more: Int32, transactions: int, left: Bool, visits: int
) -> Int32:
    nodes = len(left)
    blamed = np.full(nodes, -1, dtype=np.int32)
    for node in range(nodes - 1, -1, -1):
        if not left[node]:
            continue
        if node < transactions:
            for i in range(first[node], first[node + 1]):
                blamed[target[i]] = node
        for i in range(more_first[node], more_first[node + 1]):
            blamed[more[i]] = node
    # Whoever is left out waits for somebody who is left out too: going back ends in a cycle.
    at = np.flatnonzero(left)[0]
    passed = np.zeros(nodes, dtype=np.bool_)
    while not passed[at]:
        passed[at] = True
        at = blamed[at]
    while at >= transactions:
        at = blamed[at]
    queue = np.empty(nodes, dtype=np.int32)
    later = np.empty(nodes, dtype=np.int32)
    met = np.full(nodes, -1, dtype=np.int32)
    parent = np.empty(nodes, dtype=np.int32)
    best = np.empty(0, dtype=np.int32)
    shortest = transactions + 1
    begin = at
    candidate = 0
    while True:
        # Breadth first, by transactions: a joint is looked at along with the transaction that leads to it.
        queue[0], count = begin, 1
        length, found = 1, -1
        while count and found < 0 and length < shortest:
            i = coming = 0
            while i < count and found < 0:
                node = queue[i]
                i += 1
                for part in range(2):
                    if part == 0 and node >= transactions:
                        continue
                    low = first[node] if part == 0 else more_first[node]
                    high = first[node + 1] if part == 0 else more_first[node + 1]
                    visits -= high - low
                    for j in range(low, high):
                        other = target[j] if part == 0 else more[j]
                        if other == begin:
                            found = node
                            break
                        if not left[other] or met[other] == begin:
                            continue
                        met[other] = begin
                        parent[other] = node
                        if other >= transactions:
                            queue[count] = other
                            count += 1
                        else:
                            later[coming] = other
                            coming += 1
                    if found >= 0:
                        break
            if found < 0:
                queue, later, count = later, queue, coming
                length += 1
        if found >= 0:
            shortest = length
            size, node = 1, found
            while node != begin:
                size += 1
                node = parent[node]
            best = np.empty(size, dtype=np.int32)
            node = found
            while node != begin:
                size -= 1
                best[size] = node
                node = parent[node]
            best[0] = begin
        while candidate < transactions and not (left[candidate] and candidate != at):
            candidate += 1
        if shortest <= 2 or visits < 0 or candidate >= transactions:
            return best
        begin = candidate
        candidate += 1
