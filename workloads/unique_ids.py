"""Unique ids: no id is given out twice.

Operation (key: the source of ids): `generate` {}: ok with an id that is now the caller's.
"""

from __future__ import annotations

from checkers.evidence import shows_a_value
from checkers.multiset.rows import ELEMENTS
from checkers.multiset.unique_ids import UniqueIdsChecker
from harness.workload import Workload

WORKLOAD = Workload(
    name="unique-ids",
    about="no id is given out twice",
    value_type=ELEMENTS,
    functions=("generate",),
    evidence=(shows_a_value("generate", at_least=2),),
    checkers=lambda settings: {"unique-ids": UniqueIdsChecker()},
    anomalies=("duplicated",),
)
