"""Orders that edges come to and go from, against all paths; and what a search has learned, against all of it."""

from __future__ import annotations

import random

import numpy as np

from checkers.kernels.columns import NO_INDEX
from checkers.transactions.orders.incremental_topological_order import (
    TopologicalOrder,
    added,
    labels_between,
    remove_edge,
    topological_order,
)
from checkers.transactions.orders.nogoods import CYCLE, forbidding, learned, nogoods

EVENTS = 8
LASTING = NO_INDEX
Edges = dict[int, tuple[int, int, int]]
"""(source, target, label), by their numbers."""


def fewest_labels(lasting: list[tuple[int, int]], edges: Edges, start: int, end: int, but: int) -> int | None:
    """On any way from one event to another; None if there is none."""
    cost = {start: 0}
    for _ in range(EVENTS):
        for source, target, label in [*((a, b, but) for a, b in lasting), *edges.values()]:
            if source in cost:
                cost[target] = min(cost.get(target, EVENTS), cost[source] + (label != but))
    return cost.get(end)


def in_order(order: TopologicalOrder, lasting: list[tuple[int, int]], edges: Edges) -> bool:
    pairs = [*lasting, *((a, b) for a, b, _ in edges.values())]
    return (order.event_at[order.place] == np.arange(EVENTS)).all() and all(
        order.place[a] < order.place[b] for a, b in pairs
    )


def test_an_order_keeps_to_its_edges_and_says_why_it_refuses_one() -> None:
    refused = 0
    for seed in range(60):
        rng = random.Random(seed)
        ranks = rng.sample(range(EVENTS), EVENTS)
        pairs = [rng.sample(range(EVENTS), 2) for _ in range(3)]
        lasting = [(a, b) if ranks[a] < ranks[b] else (b, a) for a, b in pairs]
        source, target = np.array(lasting, dtype=np.int32).T.copy()
        order = topological_order(source, target, np.array(rng.sample(range(EVENTS), EVENTS)), 64)
        assert order is not None
        edges: Edges = {}
        for label in range(40):
            if edges and rng.random() < 0.4:
                number = rng.choice(sorted(edges))
                remove_edge(order, number)
                del edges[number]
            a, b = rng.sample(range(EVENTS), 2)
            but = rng.choice([NO_INDEX, *(label for _, _, label in edges.values())])
            back = fewest_labels(lasting, edges, b, a, but)
            edge = added(order, a, b, label)
            assert (edge == NO_INDEX) == (back is not None), seed
            if back is None:
                assert edge not in edges
                edges[edge] = a, b, label
            else:
                refused += 1
                labels = np.empty(EVENTS, dtype=np.int32)
                count = labels_between(order, b, a, but, labels)
                named = set(labels[:count].tolist())
                assert count == len(named) == back, seed
                some = {number: edge for number, edge in edges.items() if edge[2] in named or edge[2] == but}
                assert fewest_labels(lasting, some, b, a, but) == back, "these labels alone lead back"
            assert in_order(order, lasting, edges), seed
    assert refused > 100


def test_edges_that_last_and_make_a_cycle_have_no_order() -> None:
    source, target = np.array([[0, 1], [1, 0]], dtype=np.int32)
    assert topological_order(source, target, np.arange(2), 1) is None


def test_what_was_learned_forbids_until_it_is_forgotten() -> None:
    forgotten = 0
    for seed in range(60):
        rng = random.Random(seed)
        choices, room = 4, 24
        known = nogoods(choices, room, forgets=True)
        kept: list[tuple[int, ...]] = []
        used = 0
        for _ in range(12):
            literals = tuple(2 * choice + rng.randrange(2) for choice in rng.sample(range(choices), rng.randint(1, 3)))
            if used + len(literals) > room:
                kept, used = [], 0
                forgotten += 1
            kept.append(literals)
            used += len(literals)
            assert learned(known, np.array(literals, dtype=np.int32), CYCLE, NO_INDEX, NO_INDEX) == len(kept) - 1
            taken = np.array([rng.choice((-1, 0, 1)) for _ in range(choices)], dtype=np.int8)
            for literal in range(2 * choices):
                number = forbidding(known, taken, literal)
                forbids = [
                    one
                    for one in kept
                    if literal in one and all(taken[other >> 1] == other & 1 for other in one if other != literal)
                ]
                assert (number != NO_INDEX) == bool(forbids)
                assert number == NO_INDEX or kept[number] in forbids
    assert forgotten > 10


def test_what_must_not_be_forgotten_is_refused_once_there_is_no_room() -> None:
    known = nogoods(2, 3, forgets=False)
    two = np.array([0, 2], dtype=np.int32)
    assert learned(known, two, CYCLE, NO_INDEX, NO_INDEX) == 0
    assert learned(known, two, CYCLE, NO_INDEX, NO_INDEX) == NO_INDEX
    assert learned(known, two[:1], 1, 0, 0) == 1
    assert learned(known, two[:0], 0, 1, 1) == 2
    assert known.first[:4].tolist() == [0, 2, 3, 3] and known.choice[:3].tolist() == [CYCLE, 1, 0]
    assert known.reasons[1:3].tolist() == [[0, 0], [1, 1]]
