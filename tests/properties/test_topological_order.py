"""Orders of transactions that no edge contradicts."""

from __future__ import annotations

import random

import numpy as np

from checkers.elle.graph.order import topological_order


def defined_order(nodes: int, edges: list[tuple[int, int]]) -> list[int]:
    """The smallest of those whose predecessors are all placed, again and again."""
    order: list[int] = []
    while True:
        ready = [v for v in range(nodes) if v not in order and all(u in order for u, w in edges if w == v)]
        if not ready:
            return order
        order.append(ready[0])


def test_the_order_is_the_smallest_one_and_leaves_out_what_cycles_hold_up() -> None:
    complete = 0
    for seed in range(500):
        rng = random.Random(seed)
        nodes = rng.randint(0, 8)
        edges = [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(rng.randint(0, nodes))]
        source, target = np.array(edges, dtype=np.int32).reshape(-1, 2).T.copy()
        order = topological_order(nodes, source, target).tolist()
        assert order == defined_order(nodes, edges), seed
        complete += len(order) == nodes
    assert 100 < complete < 490
