"""Which decider answers for which model, and in what order they are asked.

The demanded model is decided first. If it is kept, so are all that it implies. If not, the strongest model that is
still open is next, until none is open that can be decided. Anomalies that were found before have ruled out some models
already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.history.committed import WRITES, Committed
from checkers.transactions.model.lattice import ConsistencyModel, strongest
from checkers.transactions.model.lattice_position import LatticePosition
from checkers.transactions.orders.bounds import BESIDE, DEMANDED, Bounds
from checkers.transactions.orders.cursor import cursor_stability_decided
from checkers.transactions.orders.parallel_snapshot import MODELS as OF_MANY_ORDERS
from checkers.transactions.orders.parallel_snapshot import parallel_snapshot_decided
from checkers.transactions.orders.total_order import decided
from checkers.transactions.orders.weak.levels import LEVELS, explaining_order, weak_levels

COSTLY_TRANSACTIONS = 200_000
"""Histories with more transactions have only weak levels decided besides the demanded model."""

OF_WRITES = {
    ConsistencyModel.READ_UNCOMMITTED: "PL-2",
    ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED: "strong-session-PL-2",
}
"""Levels that demand nothing of reads beyond the order of versions: they are decided on the history without reads."""

SERIALIZABLE_OF_ITEMS = (ConsistencyModel.REPEATABLE_READ,)


def decide(
    committed: Committed,
    demanded: ConsistencyModel,
    position: LatticePosition,
) -> tuple[LatticePosition, Mapping[ConsistencyModel, Decision]]:
    """The position after the deciders have been asked, and their decisions; VALID comes without an order or with one.

    Models that are left open without an entry were not asked: see COSTLY_TRANSACTIONS. Once searches are over
    only weak levels are.
    """
    decisions: dict[ConsistencyModel, Decision] = {}
    while left := [model for model in position.undecided(demanded) if model not in decisions]:
        affordable = [model for model in left if model is demanded or _is_cheap(model, committed)]
        if not affordable:
            break
        model = strongest(affordable)[0]
        bounds = BESIDE if demanded in position.broken else DEMANDED
        weak = [other for other in affordable if other.value in LEVELS]
        with search_budget.saying_of(f"{model.value}, of {len(left)} models that are left"):
            answers = _weak(committed, weak) if model in weak else {model: answer(committed, model, bounds)}
        for answered, decision in answers.items():
            decisions[answered] = decision
            position = position.deciding(answered, decision.verdict)
    return position, decisions


def _is_cheap(model: ConsistencyModel, committed: Committed) -> bool:
    if model.value in LEVELS or model in OF_WRITES:
        return True
    return len(committed) <= COSTLY_TRANSACTIONS and not search_budget.is_over()


def _weak(committed: Committed, models: Sequence[ConsistencyModel]) -> Mapping[ConsistencyModel, Decision]:
    """The decisions on all of these levels at once, because they share most of the work."""
    decisions = weak_levels(committed, [model.value for model in models])
    return {model: decisions[model.value] for model in models}


def answer(committed: Committed, model: ConsistencyModel, bounds: Bounds = DEMANDED) -> Decision:
    """The decision on one model. If it is VALID, and the model orders transactions or events, it comes with an
    order."""
    if model in OF_WRITES:
        if not len(committed.version_edges):
            return Decision(verdict=Verdict.VALID)
        return weak_levels(_written(committed), [OF_WRITES[model]])[OF_WRITES[model]]
    if model.value in LEVELS:
        return weak_levels(committed, [model.value])[model.value]
    if model is ConsistencyModel.CURSOR_STABILITY:
        return cursor_stability_decided(committed, bounds)
    if model in SERIALIZABLE_OF_ITEMS:
        return decided(committed, ConsistencyModel.SERIALIZABLE, bounds)
    return (parallel_snapshot_decided if model in OF_MANY_ORDERS else decided)(committed, model, bounds)


def ordered(committed: Committed, model: ConsistencyModel) -> Decision:
    """The decision on one model; if it is VALID, with an order."""
    decision = answer(committed, model)
    if decision.verdict is not Verdict.VALID or decision.order is not None:
        return decision
    if model in OF_WRITES:
        return Decision(verdict=Verdict.VALID, order=explaining_order(_written(committed), OF_WRITES[model]))
    return Decision(verdict=Verdict.VALID, order=explaining_order(committed, model.value))


def _written(committed: Committed) -> Committed:
    """The same history without reads."""
    writes = committed.writer == WRITES
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(writes)))
    return replace(committed, first=before[committed.first], key=committed.key[writes], writer=committed.writer[writes])
