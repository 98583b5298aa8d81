"""The names that help texts list are those of what there is, in its order."""

from __future__ import annotations

import dataclasses

from checkers import names
from checkers.linearizable.objects import MODELS
from checkers.transactions.elle.rw_register import Assumption
from stormproof.session.registry import workloads


def test_names_are_those_of_what_there_is() -> None:
    demand_a_model = (
        name
        for name, workload in workloads().items()
        if "model" in (field.name for field in dataclasses.fields(workload.settings_type))
    )
    assert tuple(MODELS) == names.MODELS
    assert tuple(assumption.value for assumption in Assumption) == names.ASSUMPTIONS
    assert tuple(demand_a_model) == names.TRANSACTIONAL
