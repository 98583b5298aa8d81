"""What certainly comes before itself is shown as a cycle, even where nothing is left for a second look."""

from __future__ import annotations

import random

import numpy as np

from checkers.kernels.columns import Int32
from checkers.transactions.orders.weak.precedence import Successors, _cycle, ordered

Edges = list[tuple[int, int]]
NOTHING_LEFT = -1_000
"""Visits: also for a search that begins nowhere, and so has fewer than none behind it."""


def successors(edges: Edges, nodes: int) -> Successors:
    source, target = (np.array([edge[end] for edge in edges], dtype=np.int32) for end in (0, 1))
    return Successors.of(source, target, nodes)


def first_cycle(base: Edges, forced: Edges, transactions: int, joints: int = 0) -> tuple[Int32, bool]:
    """The cycle that the first search finds, and whether there is any."""
    nodes = transactions + joints
    of_base, of_forced = successors(base, transactions), successors(forced, nodes)
    left = np.ones(nodes, dtype=np.bool_)
    left[ordered(of_base, of_forced, transactions)] = False
    if not left.any():
        return np.zeros(0, dtype=np.int32), False
    return _cycle(of_base, of_forced, transactions, left, NOTHING_LEFT), True


def test_the_search_begins_on_a_cycle_whichever_edges_it_has() -> None:
    for base, forced in (([(1, 2), (2, 1)], [(2, 3)]), ([(2, 3)], [(1, 2), (2, 1)]), ([(1, 2)], [(2, 1), (2, 3)])):
        found, is_there = first_cycle(base, forced, 4)
        assert is_there
        assert sorted(found.tolist()) == [1, 2]


def test_the_first_search_finds_a_cycle_if_there_is_any() -> None:
    cycles = 0
    for seed in range(400):
        rng = random.Random(seed)
        transactions, joints = rng.randrange(2, 7), rng.randrange(3)
        drawn = [(rng.randrange(transactions), rng.randrange(transactions)) for _ in range(rng.randrange(9))]
        among = [edge for edge in drawn if edge[0] != edge[1]]
        cut = rng.randrange(len(among) + 1)
        base, forced = among[:cut], among[cut:]
        for joint in range(transactions, transactions + joints):
            forced += [(rng.randrange(transactions), joint), (joint, rng.randrange(transactions))]
        found, is_there = first_cycle(base, forced, transactions, joints)
        edges = set(base) | set(forced)
        nodes = found.tolist()
        assert bool(nodes) == is_there, seed
        assert all(edge in edges for edge in zip(nodes, nodes[1:] + nodes[:1], strict=True)), seed
        cycles += is_there
    assert 100 < cycles < 350
