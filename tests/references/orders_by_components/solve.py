"""Makes all choices of a component at once, or shows that nothing will do.

A SAT solver proposes an alternative for each choice, cheap cycles among the edges that it brings become clauses which
forbid them (`forbidden_cycles`), and again, until there is no cycle or no proposal. What forces nothing is never put
into a clause, and the first proposal follows the numbers of transactions, which is near the truth in histories of real
systems. Clauses that contradict each other are made into a refutation (`clause_learning`).

The same component gets the same answer everywhere: bounds count conflicts, cycles and cases, and time only where a
moment was given by which an answer is wanted.
"""

from __future__ import annotations

import numpy as np

from checkers import search_budget
from checkers.api.verdict import Verdict
from tests.references.orders_by_components.clause_learning import interrupted, refuted
from tests.references.orders_by_components.clauses import CONFLICTS, Clause, literal
from tests.references.orders_by_components.forbidden_cycles import AlternativeGraph
from tests.references.orders_by_components.subproblem import Component, Solution

ROUNDS = 500
"""So often the solver proposes."""


def solved(component: Component) -> Solution:
    """An alternative for each choice, or a refutation; UNKNOWN where a bound was reached."""
    graph = AlternativeGraph.of(component)
    taken = np.where(component.writers[:, 0] < component.writers[:, 1], 0, 1).astype(np.int8)
    clauses: list[Clause] = []
    conflicts = 0
    from pysat.solvers import Glucose4  # most checks need none

    with Glucose4() as solver, interrupted(solver):
        solver.set_phases([literal(2 * i + int(taken[i])) for i in range(len(component))])
        for _ in range(ROUNDS):
            solver.conf_budget(CONFLICTS - conflicts)
            proposed = solver.solve_limited(expect_interrupt=True)  # otherwise it takes Ctrl-C for a failure of its own
            conflicts = solver.accum_stats()["conflicts"]
            if proposed is False:
                refutation = refuted(clauses)
                return Solution(verdict=Verdict.INVALID, taken=taken, refutation=refutation, conflicts=conflicts)
            if proposed is None:
                break
            for chosen in solver.get_model():
                taken[abs(chosen) - 1] = chosen > 0
            found = graph.cycles(taken)
            if not found:
                return Solution(verdict=Verdict.VALID, taken=taken, conflicts=conflicts)
            if conflicts >= CONFLICTS or search_budget.is_over():
                break
            for clause in found:
                solver.add_clause([-literal(label) for label in clause.labels])
            clauses += found
    return Solution(verdict=Verdict.UNKNOWN, taken=taken, conflicts=conflicts)
