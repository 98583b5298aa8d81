"""Which decider answers for which model, and in what order they are asked.

The demanded model is decided first. If it is kept, so are all that it implies; if not, the strongest of those that are
still open is next, until nothing is open that can be decided. Anomalies that were found before have ruled some out
already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from checkers.elle.committed import Committed
from checkers.elle.complete.cursor import cursor_stability_decided
from checkers.elle.complete.decide import decided
from checkers.elle.complete.parallel_snapshot import MODELS as OF_MANY_ORDERS
from checkers.elle.complete.parallel_snapshot import parallel_snapshot_decided
from checkers.elle.lattice import Model, strongest
from checkers.elle.proof import Decision
from checkers.elle.standing import Standing
from checkers.elle.weak.levels import LEVELS, explaining_order, weak_levels
from checkers.verdict import Verdict

COSTLY_TRANSACTIONS = 200_000
"""Of longer histories only weak levels are decided beside what was demanded."""

VACUOUS = (Model.READ_UNCOMMITTED, Model.STRONG_SESSION_READ_UNCOMMITTED)
"""Where nothing shows the order of versions, some order keeps to these."""

SERIALIZABLE_OF_ITEMS = (Model.REPEATABLE_READ,)


def decide(committed: Committed, demanded: Model, standing: Standing) -> tuple[Standing, Mapping[Model, Decision]]:
    """What stands after the deciders have been asked, and what they said; VALID comes without an order or with one.

    Models that are left open without an entry were not asked: see COSTLY_TRANSACTIONS.
    """
    decisions: dict[Model, Decision] = {}
    while left := [model for model in standing.undecided(demanded) if model not in decisions]:
        affordable = [model for model in left if model is demanded or _is_cheap(model, committed)]
        if not affordable:
            break
        model = strongest(affordable)[0]
        weak = [other for other in affordable if other.value in LEVELS]
        answers = _weak(committed, weak) if model in weak else {model: answer(committed, model)}
        for answered, decision in answers.items():
            decisions[answered] = decision
            standing = standing.deciding(answered, decision.verdict)
    return standing, decisions


def _is_cheap(model: Model, committed: Committed) -> bool:
    return model.value in LEVELS or model in VACUOUS or len(committed) <= COSTLY_TRANSACTIONS


def _weak(committed: Committed, models: Sequence[Model]) -> Mapping[Model, Decision]:
    """All of them at once, for they share most of the work."""
    told = weak_levels(committed, [model.value for model in models])
    return {model: told[model.value] for model in models}


def answer(committed: Committed, model: Model) -> Decision:
    """The decision on one model. Where it is VALID it has an order if the model has one of transactions or events."""
    if model in VACUOUS:
        return Decision(verdict=Verdict.VALID)
    if model.value in LEVELS:
        return weak_levels(committed, [model.value])[model.value]
    if model is Model.CURSOR_STABILITY:
        return cursor_stability_decided(committed)
    if model in SERIALIZABLE_OF_ITEMS:
        return decided(committed, Model.SERIALIZABLE)
    return (parallel_snapshot_decided if model in OF_MANY_ORDERS else decided)(committed, model)


def ordered(committed: Committed, model: Model) -> Decision:
    """The decision on one model, VALID with an order."""
    decision = answer(committed, model)
    if decision.verdict is not Verdict.VALID or decision.order is not None:
        return decision
    if model in VACUOUS:
        return Decision(verdict=Verdict.VALID, order=np.arange(len(committed), dtype=np.int32))
    return Decision(verdict=Verdict.VALID, order=explaining_order(committed, model.value))
