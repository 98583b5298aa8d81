"""A refutation out of clauses that contradict each other, by a small solver that keeps a reason for all that it learns.

A reason for a clause refutes the alternatives in it, taken together, and nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from checkers import search_budget
from tests.references.orders_by_components.clauses import CONFLICTS, Clause, literal
from tests.references.orders_by_components.subproblem import Refutation

if TYPE_CHECKING:
    from pysat.solvers import Glucose4

CASES = 1_000
"""A refutation has at most so many cycles, and the search for it at most so many conflicts."""
LOOKS = 20_000_000
"""At so many looks at clauses, the search for a refutation is given up."""
LEAVING_OUT = 300
"""So many clauses are tried to do without."""


def refuted(clauses: Sequence[Clause]) -> Refutation | None:
    """A refutation out of clauses that cannot all be kept."""
    search = _Learning(_core(clauses))
    for _ in range(CASES):
        if search_budget.is_over():
            break
        learned = search.learned()
        if learned is None or not learned.labels:
            return learned.refutation if learned and learned.cycles <= CASES else None
    return None


@contextmanager
def interrupted(solver: Glucose4) -> Iterator[None]:
    """When searches are over the solver stops, if it is asked then: it answers None."""
    if not search_budget.is_bounded():
        yield
        return
    with search_budget.ending(solver.interrupt):
        yield


def _core(clauses: Sequence[Clause]) -> list[Clause]:
    """A part of them that cannot all be kept: what the solver needed when it was asked, and asked again without one
    after the other."""
    needed = list(clauses)
    variables = max(label // 2 + 1 for clause in needed for label in clause.labels)
    from pysat.solvers import Glucose4  # most checks need none

    with Glucose4() as solver:
        for number, clause in enumerate(needed, start=variables + 1):
            solver.add_clause([-number, *(-literal(label) for label in clause.labels)])
        numbers = list(range(variables + 1, variables + 1 + len(needed)))
        assert not solver.solve_limited(assumptions=numbers, expect_interrupt=True)  # they contradicted each other
        numbers = sorted(solver.get_core() or ())
        left = 0
        for _ in range(LEAVING_OUT):
            if left == len(numbers) or search_budget.is_over():
                break
            solver.conf_budget(CONFLICTS)
            fewer = numbers[:left] + numbers[left + 1 :]
            if solver.solve_limited(assumptions=fewer, expect_interrupt=True) is False:
                numbers = sorted(solver.get_core() or ())
            else:
                left += 1
    return [needed[number - variables - 1] for number in numbers]


class _Learning:
    """Takes alternatives until a clause forbids that, and learns from it a clause that had not been there."""

    def __init__(self, clauses: Iterable[Clause]) -> None:
        self._clauses: list[Clause] = []
        self._free: list[int] = []
        """Of each clause, how many of its labels are not taken."""
        self._having: dict[int, list[int]] = defaultdict(list)
        """label -> clauses."""
        self._trail: list[tuple[int, Clause | None]] = []
        """(label taken, clause that left nothing else or None)."""
        self._taken: set[int] = set()
        self._looks = 0
        for clause in clauses:
            self._add(clause)

    def learned(self) -> Clause | None:
        """One without labels is forbidden in any case; None: that took too long."""
        conflict = self._conflict()
        if conflict is None:
            return None
        while self._trail:
            label, reason = self._taken_back()
            if label not in conflict.labels:
                continue
            if reason is None:
                break
            conflict = _resolvent(conflict, reason, label)
        self._add(conflict)
        return conflict

    def _add(self, clause: Clause) -> None:
        for label in clause.labels:
            self._having[label].append(len(self._clauses))
        self._free.append(sum(label not in self._taken for label in clause.labels))
        self._clauses.append(clause)

    def _take(self, label: int, reason: Clause | None) -> None:
        self._trail.append((label, reason))
        self._taken.add(label)
        for i in self._having[label]:
            self._free[i] -= 1

    def _taken_back(self) -> tuple[int, Clause | None]:
        label, reason = self._trail.pop()
        self._taken.remove(label)
        for i in self._having[label]:
            self._free[i] += 1
        return label, reason

    def _conflict(self) -> Clause | None:
        """Takes alternatives until all of a clause are taken. The clauses cannot all be kept, so that happens."""
        while self._looks < LOOKS:
            self._looks += len(self._clauses)
            if 0 in self._free:
                return self._clauses[self._free.index(0)]
            forced = self._forced()
            if forced is None:
                self._take(self._guess(), None)
            else:
                self._take(*forced)
        return None

    def _forced(self) -> tuple[int, Clause] | None:
        for i, free in enumerate(self._free):
            if free == 1:
                (label,) = (label for label in self._clauses[i].labels if label not in self._taken)
                if label ^ 1 not in self._taken:
                    return label ^ 1, self._clauses[i]
        return None

    def _guess(self) -> int:
        """What is in most of the clauses that have fewest labels left."""
        open_clauses = [
            (self._free[i], [label for label in clause.labels if label not in self._taken])
            for i, clause in enumerate(self._clauses)
            if not any(label ^ 1 in self._taken for label in clause.labels)
        ]
        fewest = min(free for free, _ in open_clauses)
        counted = Counter(label for free, labels in open_clauses if free == fewest for label in labels)
        return min(counted, key=lambda label: (-counted[label], label))


def _resolvent(under: Clause, reason: Clause, label: int) -> Clause:
    """Of one clause with `label` and one with the other alternative of its choice."""
    labels = (set(under.labels) - {label}) | (set(reason.labels) - {label ^ 1})
    pair = under.refutation, reason.refutation
    return Clause(
        labels=tuple(sorted(labels)),
        refutation=Refutation(choice=label >> 1, alternatives=pair if label & 1 == 0 else (pair[1], pair[0])),
        cycles=under.cycles + reason.cycles,
    )
