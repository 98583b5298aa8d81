"""The solver of components against all alternatives of all choices."""

from __future__ import annotations

import random
from collections import Counter

from checkers.api.verdict import Verdict
from tests.references.components_by_hand import has_answer, is_refuted, is_solved, random_component
from tests.references.orders_by_components.solve import solved
from tests.references.orders_by_components.subproblem import Forbidden
from tests.references.thousands import thousands


def judge(seeds: range) -> None:
    seen: Counter[tuple[Forbidden, Verdict]] = Counter()
    for seed in seeds:
        component = random_component(random.Random(seed))
        solution = solved(component)
        taken = dict(enumerate(solution.taken.tolist()))
        assert solution.verdict is (Verdict.VALID if has_answer(component) else Verdict.INVALID), seed
        if solution.verdict is Verdict.VALID:
            assert is_solved(component, taken), seed
        else:
            assert solution.refutation is not None and is_refuted(component, solution.refutation, {}), seed
        seen[component.forbidden, solution.verdict] += 1
    assert all(seen[forbidden, verdict] > len(seeds) / 20 for forbidden in Forbidden for verdict in list(Verdict)[:2])


def test_answers_are_those_of_trying_everything() -> None:
    judge(range(400))


@thousands()
def test_answers_are_those_of_trying_everything_in_many_components(seeds: range) -> None:
    judge(seeds)
