"""Random components, and whether one has an answer: by trying all alternatives of all choices."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from tests.references.orders_by_components.subproblem import Component, Forbidden, Refutation

Edge = tuple[int, int]


def random_component(rng: random.Random) -> Component:
    """Up to 6 events, known edges between some of them, and up to 8 choices of random writers and readers."""
    size = rng.randint(3, 6)
    order = rng.sample(range(size), size)
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    density = rng.choice((0.1, 0.3, 0.5))
    forbidden = rng.choice(list(Forbidden))
    edges = [pair for pair in pairs if rng.random() < density]
    anti = [pair for pair in pairs if rng.random() < density / 2] if forbidden is not Forbidden.CYCLES else []
    choices = rng.sample(pairs, min(rng.randint(2, 8), len(pairs)))
    readers = rng.choice((0, 2, 4, 6))
    first, alternatives = [0], []
    for one, other in choices:
        for source, target in ((one, other), (other, one)):
            behind = [(r, target) for r in rng.sample(range(size), min(size, rng.randint(0, readers))) if r != target]
            alternatives += [(source, target), *behind]
            first.append(len(alternatives))
    return Component(
        events=np.arange(size, dtype=np.int32),
        edges=_rows(edges),
        key=np.zeros(len(choices), dtype=np.int32),
        writers=_rows(choices),
        first=np.array(first, dtype=np.int64),
        alternatives=_rows(alternatives),
        forbidden=forbidden,
        anti_dependencies=_rows(anti),
    )


def _rows(pairs: list[Edge]) -> np.ndarray:
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def is_solved(component: Component, taken: dict[int, int]) -> bool:
    """Whether these alternatives make no forbidden cycle."""
    return not forbidden_cycle_among(component, *taken_edges(component, taken))


def has_answer(component: Component) -> bool:
    choices = range(len(component))
    return any(is_solved(component, dict(enumerate(taken))) for taken in product((0, 1), repeat=len(choices)))


def taken_edges(component: Component, taken: dict[int, int]) -> tuple[set[Edge], set[Edge]]:
    """(dependencies, anti-dependencies), of which the latter are kept apart only where that matters."""
    edges = {(a, b) for a, b in component.edges.tolist()}
    anti = {(a, b) for a, b in component.anti_dependencies.tolist()}
    for choice, alternative in taken.items():
        low, high = component.first[2 * choice + alternative : 2 * choice + alternative + 2]
        (edge, *behind) = [(a, b) for a, b in component.alternatives[low:high].tolist()]
        edges.add(edge)
        anti.update(behind)
    return (edges | anti, set()) if component.forbidden is Forbidden.CYCLES else (edges, anti)


def forbidden_cycle_among(component: Component, edges: set[Edge], anti: set[Edge]) -> bool:
    reach = set(edges)
    for middle in range(len(component.events)):
        reach |= {(a, d) for a, b in reach if b == middle for c, d in reach if c == middle}
    return any(a == b or (b, a) in anti for a, b in reach)


def is_refuted(component: Component, refutation: Refutation, taken: dict[int, int]) -> bool:
    """Whether every case ends in a cycle that the alternatives taken on the way do make."""
    if refutation.alternatives is not None:
        assert refutation.choice not in taken, "a choice is made twice"
        return all(
            is_refuted(component, case, taken | {refutation.choice: alternative})
            for alternative, case in enumerate(refutation.alternatives)
        )
    edges, anti = taken_edges(component, taken)
    steps = list(zip(refutation.cycle, (*refutation.cycle[1:], refutation.cycle[0]), strict=True))
    return all(step in edges | anti for step in steps) and sum(step not in edges for step in steps) <= 1
