"""Strict order of writes: who sees a write sees all that were over before it began.

Operations (key: the table): `write` {value}, and `read` {}: ok with all values that the table has. It is judged, not
run.
"""

from __future__ import annotations

from checkers.api.evidence import shows_a_value, shows_members
from checkers.completions import members
from checkers.elements.causal_reverse import CausalReverseChecker
from checkers.elements.rows import ELEMENTS
from harness.workload import Workload

WORKLOAD = Workload(
    name="causal-reverse",
    about="who sees a write sees all that were over before it began",
    value_type=ELEMENTS,
    functions=("write", "read"),
    any_values=True,
    lists=("read",),
    puts=("write",),
    repeats=(members("write"),),
    evidence=(shows_members("read", "values", "that shows a write"), shows_a_value("read")),
    checkers=lambda settings: {"causal-reverse": CausalReverseChecker()},
)
