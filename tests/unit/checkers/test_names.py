"""The names that help texts list are those of what there is, in its order."""

from __future__ import annotations

from checkers import names
from checkers.by_workload import WORKLOADS
from checkers.linearizable import MODELS
from checkers.transactions.elle.rw_register import Assumption


def test_names_are_those_of_what_there_is() -> None:
    assert tuple(MODELS) == names.MODELS
    assert tuple(WORKLOADS) == names.WORKLOADS
    assert tuple(assumption.value for assumption in Assumption) == names.ASSUMPTIONS
    assert tuple(name for name, judged in WORKLOADS.items() if "model" in judged.options) == names.TRANSACTIONAL
