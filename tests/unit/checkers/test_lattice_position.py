from __future__ import annotations

import pytest

from checkers.transactions.model.lattice import Model, implied
from checkers.transactions.model.lattice_position import LatticePosition
from checkers.verdict import Verdict


def test_of_a_history_nobody_has_looked_at_nothing_is_known() -> None:
    assert LatticePosition().verdict(Model.READ_UNCOMMITTED) is Verdict.UNKNOWN
    assert LatticePosition().undecided(Model.CAUSAL) == implied(Model.CAUSAL)


def test_an_anomaly_breaks_the_models_that_forbid_it_and_leaves_the_others_open() -> None:
    skewed = LatticePosition().showing(["G2-item"])
    assert skewed.verdict(Model.SERIALIZABLE) is Verdict.INVALID
    assert skewed.verdict(Model.SNAPSHOT_ISOLATION) is Verdict.UNKNOWN
    assert skewed.strongest(Model.STRICT_SERIALIZABLE) == (Model.STRONG_SNAPSHOT_ISOLATION,)


def test_what_is_proved_proves_all_it_implies_and_nothing_above() -> None:
    proved = LatticePosition().showing(["G2-item"]).deciding(Model.SNAPSHOT_ISOLATION, Verdict.VALID)
    assert proved.verdict(Model.READ_ATOMIC) is Verdict.VALID
    assert proved.verdict(Model.CAUSAL) is Verdict.UNKNOWN
    assert proved.undecided(Model.SERIALIZABLE) == ()


def test_an_unknown_answer_changes_nothing() -> None:
    assert LatticePosition().deciding(Model.CAUSAL, Verdict.UNKNOWN) == LatticePosition()


def test_nothing_is_claimed_above_the_demand() -> None:
    assert LatticePosition().keeping(Model.CAUSAL).strongest(Model.CAUSAL) == (Model.CAUSAL,)


def test_a_contradiction_is_our_own_mistake() -> None:
    torn = LatticePosition().keeping(Model.SERIALIZABLE).showing(["G0"])
    with pytest.raises(AssertionError, match="proved and ruled out"):
        torn.verdict(Model.CAUSAL)
