from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from checkers.transactions.model.lattice import ConsistencyModel, implied
from checkers.transactions.model.lattice_position import LatticePosition


def test_without_any_answer_no_model_is_ruled_out_and_none_is_proven() -> None:
    assert LatticePosition().verdict(ConsistencyModel.READ_UNCOMMITTED) is Verdict.UNKNOWN
    assert LatticePosition().undecided(ConsistencyModel.CAUSAL) == implied(ConsistencyModel.CAUSAL)


def test_an_anomaly_breaks_the_models_that_forbid_it_and_leaves_the_others_open() -> None:
    skewed = LatticePosition().showing(["G2-item"])
    assert skewed.verdict(ConsistencyModel.SERIALIZABLE) is Verdict.INVALID
    assert skewed.verdict(ConsistencyModel.SNAPSHOT_ISOLATION) is Verdict.UNKNOWN
    assert skewed.strongest(ConsistencyModel.STRICT_SERIALIZABLE) == (ConsistencyModel.STRONG_SNAPSHOT_ISOLATION,)


def test_what_is_proved_proves_all_it_implies_and_nothing_above() -> None:
    proved = LatticePosition().showing(["G2-item"]).deciding(ConsistencyModel.SNAPSHOT_ISOLATION, Verdict.VALID)
    assert proved.verdict(ConsistencyModel.READ_ATOMIC) is Verdict.VALID
    assert proved.verdict(ConsistencyModel.CAUSAL) is Verdict.UNKNOWN
    assert proved.undecided(ConsistencyModel.SERIALIZABLE) == ()


def test_an_unknown_answer_changes_nothing() -> None:
    assert LatticePosition().deciding(ConsistencyModel.CAUSAL, Verdict.UNKNOWN) == LatticePosition()


def test_nothing_is_claimed_above_the_demand() -> None:
    assert LatticePosition().keeping(ConsistencyModel.CAUSAL).strongest(ConsistencyModel.CAUSAL) == (
        ConsistencyModel.CAUSAL,
    )


def test_a_contradiction_is_our_own_mistake() -> None:
    torn = LatticePosition().keeping(ConsistencyModel.SERIALIZABLE).showing(["G0"])
    with pytest.raises(AssertionError, match="proved and ruled out"):
        torn.verdict(ConsistencyModel.CAUSAL)
