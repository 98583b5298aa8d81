from __future__ import annotations

import itertools

import pytest

from checkers.transactions.model.lattice import (
    ALIASES,
    PROMISES,
    ConsistencyModel,
    forbidden,
    implied,
    model_named,
    ruled_out,
    stronger_too,
    strongest,
    weakest,
)


def test_every_model_has_a_promise_and_every_name_leads_to_one() -> None:
    assert set(PROMISES) == set(ConsistencyModel)
    assert all(model_named(model.value) is model for model in ConsistencyModel)
    assert all(model_named(name) is model for name, model in ALIASES.items())
    with pytest.raises(ValueError, match="called 'frob'; there are: read-uncommitted, "):
        model_named("frob")


@pytest.mark.parametrize(
    ("spelt", "model"),
    [
        (":serializable", ConsistencyModel.SERIALIZABLE),
        ("Snapshot_Isolation", ConsistencyModel.SNAPSHOT_ISOLATION),
        ("pl-2.99", ConsistencyModel.REPEATABLE_READ),
        ("Strict Serializable", ConsistencyModel.STRICT_SERIALIZABLE),
    ],
)
def test_a_model_is_known_however_it_is_spelt(spelt: str, model: ConsistencyModel) -> None:
    assert model_named(spelt) is model


def test_strict_serializability_implies_all_and_nothing_implies_it() -> None:
    assert implied(ConsistencyModel.STRICT_SERIALIZABLE) == tuple(ConsistencyModel)
    assert stronger_too([ConsistencyModel.STRICT_SERIALIZABLE]) == (ConsistencyModel.STRICT_SERIALIZABLE,)
    assert stronger_too([ConsistencyModel.READ_UNCOMMITTED]) == tuple(ConsistencyModel)


def test_what_a_weaker_model_forbids_each_stronger_one_forbids() -> None:
    for stronger, weaker in itertools.product(ConsistencyModel, ConsistencyModel):
        if weaker in implied(stronger):
            assert forbidden(weaker) <= forbidden(stronger)
            assert stronger in stronger_too([weaker])


def test_no_two_models_imply_each_other() -> None:
    for one, other in itertools.combinations(ConsistencyModel, 2):
        assert not (one in implied(other) and other in implied(one))


def test_declared_implications_are_not_implied_by_others() -> None:
    for model, promise in PROMISES.items():
        assert strongest(promise.weaker) == tuple(weaker for weaker in ConsistencyModel if weaker in promise.weaker), (
            model
        )


@pytest.mark.parametrize(
    ("anomaly", "least", "remain"),
    [
        ("G0", ["read-uncommitted"], []),
        ("G1c", ["PL-2"], ["strong-session-read-uncommitted"]),
        ("lost-update", ["cursor-stability"], ["causal"]),
        (
            "G-single-item",
            ["consistent-view", "repeatable-read"],
            ["cursor-stability", "causal"],
        ),
        ("G2-item", ["repeatable-read"], ["strong-snapshot-isolation"]),
        (
            "G-nonadjacent-item",
            ["snapshot-isolation", "repeatable-read"],
            ["strong-session-parallel-snapshot-isolation"],
        ),
        (
            "G-single-item-process",
            ["strong-session-parallel-snapshot-isolation"],
            ["causal", "serializable"],
        ),
        (
            "G-single-item-realtime",
            ["strong-snapshot-isolation"],
            ["strong-session-serializable"],
        ),
    ],
)
def test_what_an_anomaly_rules_out_and_what_remains(anomaly: str, least: list[str], remain: list[str]) -> None:
    broken = ruled_out([anomaly])
    assert [model.value for model in weakest(broken)] == least
    assert [model.value for model in strongest(set(ConsistencyModel) - set(broken))] == remain
