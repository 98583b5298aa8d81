"""Orders that a store may have gone by are found though all of its sessions are busy, and never where there is none."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from transaction_stores import Keys, Level, Store, Values, Violation, committed

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.search_budget import searching_until
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders import windowed_search
from checkers.transactions.orders.bounds import DEMANDED
from checkers.transactions.orders.events import Events, ExternalOrder, Isolation, events
from checkers.transactions.orders.replay import explains
from checkers.transactions.orders.time_bounds import windows
from checkers.transactions.orders.total_order import MODELS
from checkers.transactions.orders.windowed_search import OrderSearch
from tests.references.commit_orders import allowed
from tests.references.transaction_histories import random_committed

ISOLATIONS = {Level.SERIALIZABLE: Isolation.SERIALIZABLE, Level.SNAPSHOT: Isolation.SNAPSHOT}
FORBIDDEN = {
    Level.SERIALIZABLE: (Violation.WRITE_SKEW, Violation.LOST_UPDATE, Violation.LONG_FORK),
    Level.SNAPSHOT: (Violation.LOST_UPDATE, Violation.LONG_FORK),
}


def busy(level: Level, lag: int, seed: int, violation: Violation | None = None, transactions: int = 2_000) -> Store:
    """Each key has a dozen writers at any moment."""
    return Store(
        level=level,
        values=Values.REGISTERS,
        transactions=transactions,
        sessions=transactions // 10,
        keys=Keys(alive=20),
        lag=lag,
        indefinite=0.01,
        violation=violation,
        seed=seed,
    )


def order_of_a_store(events: Events) -> Decision | None:
    search = OrderSearch.of(events)
    return search and search.decision(DEMANDED.steps)


@pytest.mark.parametrize("level", ISOLATIONS)
@pytest.mark.parametrize(
    ("lag", "kept"), [(0, ExternalOrder.REALTIME), (40, ExternalOrder.SESSION), (40, ExternalOrder.NOTHING)]
)
def test_an_order_of_busy_sessions_is_found_and_keeps_what_is_known(
    level: Level, lag: int, kept: ExternalOrder
) -> None:
    for seed in range(3):
        history = committed(busy(level, lag, seed))
        known = events(history, ISOLATIONS[level], kept)
        decision = order_of_a_store(known)
        assert decision is not None and decision.verdict is Verdict.VALID and decision.order is not None
        assert explains(known.accesses, known.width, decision.order)
        place = np.full(known.size, -1)
        place[decision.order] = np.arange(len(decision.order))
        assert (place[: len(history) * known.width] >= 0).all()
        within = (known.base.source < len(place)) & (known.base.target < len(place))
        within &= (place[known.base.source] >= 0) & (place[known.base.target] >= 0)
        assert (place[known.base.source[within]] < place[known.base.target[within]]).all()
        if kept is ExternalOrder.REALTIME:
            of = decision.order // known.width
            begins, commits = (decision.order % known.width == part for part in (0, known.width - 1))
            latest = np.maximum.accumulate(np.where(begins, history.start[of], -1))
            assert (history.end[of] > latest)[commits & (of != INITIAL)].all(), (
                "one that began after another's end comes before it"
            )


@pytest.mark.parametrize("isolation", ISOLATIONS.values())
def test_orders_are_found_of_small_histories_that_have_one_and_of_no_others(isolation: Isolation) -> None:
    """Brute force knows which ones have: those that are not found are of no store that goes by real time."""
    seen: Counter[bool] = Counter()
    for model, (of, kept) in MODELS.items():
        for seed in range(150 if of is isolation else 0):
            history = random_committed(random.Random(seed), most=5)
            found = order_of_a_store(events(history, isolation, kept)) is not None
            if allowed(model, history):
                seen[found] += 1
                assert found or kept is not ExternalOrder.REALTIME, (seed, model)
            else:
                assert not found, (seed, model)
    assert seen[True] > 4 * seen[False], seen


@pytest.mark.parametrize(
    ("level", "kept"), [(Level.SERIALIZABLE, ExternalOrder.REALTIME), (Level.SNAPSHOT, ExternalOrder.SESSION)]
)
def test_an_order_is_found_where_each_key_has_dozens_of_writers_at_once(
    level: Level, kept: ExternalOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = committed(replace(busy(level, 0, 1), sessions=600, keys=Keys(alive=12)))
    known = events(history, ISOLATIONS[level], kept)
    assert order_of_a_store(known) is not None
    # With hardly any room for what is learned it is forgotten over and over, and still found.
    monkeypatch.setattr(windowed_search, "NOGOODS_AN_EVENT", 2)
    assert order_of_a_store(known) is not None


def test_windows_in_which_no_order_keeps_all_events_are_widened() -> None:
    store = replace(busy(Level.SNAPSHOT, 200, 1, transactions=10_000), keys=Keys(alive=100), indefinite=0.0)
    known = events(committed(store), Isolation.SNAPSHOT, ExternalOrder.SESSION)
    assert order_of_a_store(known) is not None


def test_a_search_that_is_told_to_stop_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = events(committed(busy(Level.SERIALIZABLE, 0, 0)), Isolation.SERIALIZABLE, ExternalOrder.REALTIME)
    assert order_of_a_store(known) is not None
    with searching_until(0.0):
        assert order_of_a_store(known) is None
    monkeypatch.setattr(search_budget, "stopping", lambda: nullcontext(np.ones(1, dtype=np.bool_)))
    assert order_of_a_store(known) is None


@pytest.mark.parametrize(
    ("level", "violation"), [(level, violation) for level, several in FORBIDDEN.items() for violation in several]
)
def test_no_order_is_found_where_there_is_none(level: Level, violation: Violation) -> None:
    for seed in range(2):
        history = committed(busy(level, 0, seed, violation, transactions=400))
        for kept in ExternalOrder:
            assert order_of_a_store(events(history, ISOLATIONS[level], kept)) is None


def test_windows_of_a_store_that_lags_contradict_each_other_until_its_reads_may_be_late() -> None:
    history = committed(busy(Level.SERIALIZABLE, 60, 1))
    known = events(history, Isolation.SERIALIZABLE, ExternalOrder.SESSION)
    assert windows(known, behind=0) is None
    narrowed = windows(known, behind=4 * len(history))
    assert narrowed is not None
    (low, high), forced = narrowed
    assert (low <= high)[1:].all() and forced.shape[1] > 0
    assert (high <= known.settled).all(), "an event took effect after its transaction had ended"
