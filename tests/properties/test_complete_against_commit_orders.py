"""Serializability and snapshot isolation against all commit orders, with orders and proofs replayed step by step."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from transaction_stores import RETIRED, Keys, Level, Store, Values, Violation
from transaction_stores import committed as store_committed

from checkers.api.verdict import Verdict
from checkers.search_budget import searching_until
from checkers.transactions.evidence.proof import Because, Bound, Decision, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL, NEVER, WRITES, Committed
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.model.lattice_position import LatticePosition
from checkers.transactions.orders import (
    bounded_propagation,
    bounds,
    complete_search,
    deciders,
    refutation,
    saturation,
    total_order,
)
from checkers.transactions.orders.bounds import DEMANDED
from checkers.transactions.orders.events import ExternalOrder, Isolation
from checkers.transactions.orders.subhistory import excerpt, of_the_whole
from checkers.transactions.orders.total_order import MODELS, decided
from checkers.transactions.orders.windowed_search import OrderSearch
from tests.references.commit_orders import allowed
from tests.references.thousands import thousands
from tests.references.transaction_histories import committed as written
from tests.references.transaction_histories import random_committed


class Replay:
    """What a history says by itself, and whether steps follow from it."""

    def __init__(self, committed: Committed, model: str) -> None:
        self.committed = committed
        isolation, self.kept = MODELS[model]
        self.width = isolation.value
        rows = list(zip(committed.transaction.tolist(), committed.key.tolist(), committed.writer.tolist(), strict=True))
        self.reads = {(t, k, w) for t, k, w in rows if w != WRITES}
        self.writes = {(t, k) for t, k, w in rows if w == WRITES}
        self.version_edges = set(map(tuple, committed.version_edges.tolist()))

    def begin(self, t: int) -> int:
        return t * self.width

    def commit(self, t: int) -> int:
        return t * self.width + self.width - 1

    def wrote(self, t: int, key: int) -> bool:
        return t == INITIAL or (t, key) in self.writes

    def follows(self, step: ProofStep, steps: list[ProofStep]) -> bool:
        source, target = step.source // self.width, step.target // self.width
        between_transactions = (step.source, step.target) == (self.commit(source), self.begin(target))
        path = [steps[number] for number in step.path]
        joined = all(a.target == b.source for a, b in pairwise(path))

        def leads(begin: int, end: int) -> bool:
            return joined and (begin == end if not path else (path[0].source, path[-1].target) == (begin, end))

        start, end, session = self.committed.start, self.committed.end, self.committed.session
        match step.because:
            case Because.INITIAL:
                return between_transactions and source == INITIAL != target
            case Because.INSIDE:
                return self.width == 2 and (step.source, step.target) == (2 * source, 2 * source + 1)
            case Because.READ:
                return between_transactions and (target, step.key, source) in self.reads
            case Because.SESSION:
                definite = end[source] != NEVER and source != INITIAL and self.kept is ExternalOrder.SESSION
                return between_transactions and definite and session[source] == session[target] and source < target
            case Because.REALTIME:
                kept = self.kept is ExternalOrder.REALTIME
                return bool(between_transactions and kept and end[source] < start[target] and source != INITIAL)
            case Because.VERSION_ORDER:
                return between_transactions and (step.key, source, target) in self.version_edges
            case Because.OVERWRITTEN:
                return (
                    between_transactions
                    and target == step.writer
                    and self.wrote(source, step.key)
                    and source not in (step.reader, step.writer)
                    and (step.reader, step.key, step.writer) in self.reads
                    and leads(self.commit(source), self.begin(step.reader))
                )
            case Because.OVERWRITES:
                return (
                    (step.source, step.target) == (self.begin(step.reader), self.commit(target))
                    and self.wrote(target, step.key)
                    and target not in (step.reader, step.writer)
                    and (step.reader, step.key, step.writer) in self.reads
                    and leads(self.begin(step.writer), self.commit(target))
                )
            case Because.EXCLUSIVE:
                return (
                    between_transactions
                    and self.width == 2
                    and source != target
                    and self.wrote(source, step.key)
                    and self.wrote(target, step.key)
                    and leads(self.begin(source), self.commit(target))
                )
        return False

    def case(self, proof: Proof) -> ProofStep:
        step = proof.steps[0]
        source, target = step.source // self.width, step.target // self.width
        assert step.because is Because.CASE
        assert (step.source, step.target) == (self.commit(source), self.begin(target))
        assert self.wrote(source, step.key) and self.wrote(target, step.key)
        return step

    def refutes(self, proof: Proof, before: list[ProofStep], assumed: int = 0) -> bool:
        steps = list(before) + list(proof.steps[:assumed])
        for step in proof.steps[assumed:]:
            if any(number >= len(steps) for number in step.path) or not self.follows(step, steps):
                return False
            steps.append(step)
        if proof.cases:
            one, other = (self.case(case) for case in proof.cases)
            writers = [(step.source // self.width, step.target // self.width) for step in (one, other)]
            same = writers[0] == writers[1][::-1] and one.key == other.key
            return same and all(self.refutes(case, steps, 1) for case in proof.cases)
        around = [steps[number] for number in proof.cycle]
        return bool(around) and all(a.target == b.source for a, b in zip(around, [*around[1:], around[0]], strict=True))

    def explains(self, order: list[int]) -> bool:
        """Also that what is known is kept."""
        place = {event: i for i, event in enumerate(order)}
        size = len(self.committed)
        if sorted(order) != list(range(size * self.width)) or order[0] != INITIAL:
            return False
        if any(place[self.begin(t)] > place[self.commit(t)] for t in range(size)):
            return False
        current = {}
        open_: set[tuple[int, int]] = set()
        reads, writes = defaultdict(list), defaultdict(list)
        for r, k, w in self.reads:
            reads[r].append((k, w))
        for t, k in self.writes:
            writes[t].append(k)
        for event in order:
            t = event // self.width
            if event == self.begin(t):
                if any(current.get(k, INITIAL) != w for k, w in reads[t]):
                    return False
                if any(k in {key for _, key in open_} for k in writes[t]):
                    return False
                open_ |= {(t, k) for k in writes[t]}
            if event == self.commit(t):
                open_ -= {(t, k) for k in writes[t]}
                current |= dict.fromkeys(writes[t], t)
        start, end, session = self.committed.start, self.committed.end, self.committed.session
        for t in range(1, size):
            later = np.flatnonzero(start > end[t]) if self.kept is ExternalOrder.REALTIME else []
            if self.kept is ExternalOrder.SESSION and end[t] != NEVER:
                later = np.flatnonzero((session == session[t]) & (np.arange(size) > t))
            if any(place[self.commit(t)] > place[self.begin(u)] for u in later):
                return False
        return all(place[self.commit(u)] < place[self.begin(v)] for _, u, v in self.version_edges)


def held_up(committed: Committed, model: str) -> Decision:
    decision = decided(committed, model)
    replay = Replay(committed, model)
    if decision.verdict is Verdict.VALID:
        assert decision.order is not None
        assert replay.explains(decision.order.tolist()), (committed, model)
    if decision.verdict is Verdict.INVALID:
        assert decision.proof is not None
        assert replay.refutes(decision.proof, []), (committed, model, decision.proof)
    return decision


def agree(seeds: range, most: int) -> Counter[tuple[str, Verdict]]:
    seen: Counter[tuple[str, Verdict]] = Counter()
    for seed in seeds:
        committed = random_committed(random.Random(seed), most=most)
        for model in MODELS:
            expected = Verdict.VALID if allowed(model, committed) else Verdict.INVALID
            assert held_up(committed, model).verdict is expected, (seed, model, committed)
            seen[model, expected] += 1
    return seen


def test_what_ended_comes_before_all_that_begins_later_whatever_is_still_under_way() -> None:
    """The first transaction ended before the third one began, the second before the fourth, and the third goes on."""
    history = written("[0,2] w(x,1)\n [1,5] w(y,1)\n [3,9] w(z,1)\n [6,8] r(x,-)")
    assert held_up(history, "strict-serializable").verdict is Verdict.INVALID
    assert held_up(history, "serializable").verdict is Verdict.VALID


@thousands()
def test_many_histories_are_decided_as_by_all_orders(seeds: range) -> None:
    agree(seeds, 6)


@pytest.mark.parametrize("keys", [pytest.param(Keys(), marks=pytest.mark.gate), RETIRED], ids=["kept", "retired"])
@pytest.mark.parametrize(
    ("model", "values"),
    [
        pytest.param(model, values, marks=pytest.mark.gate if place % 4 in (1, 2) else [])
        for place, (model, values) in enumerate(product(MODELS, Values))
    ],
)
def test_a_store_keeps_its_level_unless_something_is_planted(model: str, values: Values, keys: Keys) -> None:
    serial = MODELS[model][0] is Isolation.SERIALIZABLE
    level, violation = (Level.SERIALIZABLE, Violation.WRITE_SKEW) if serial else (Level.SNAPSHOT, Violation.LOST_UPDATE)
    store = Store(level=level, values=values, transactions=2_000, keys=keys, indefinite=0.01)
    assert held_up(store_committed(store), model).verdict is Verdict.VALID
    assert held_up(store_committed(replace(store, violation=violation)), model).verdict is Verdict.INVALID


NEITHER_ORDER = """
    w(x,1) w(p,1)
    w(x,2) w(q,1)
    w(y,1) w(s,1)
    w(y,2) w(t,1)
    r(x,1) r(s,1) r(t,1)
    r(x,2) r(s,1) r(t,1)
    r(y,1) r(p,1) r(q,1)
    r(y,2) r(p,1) r(q,1)
"""
"""Both readers of x saw all of y's writers, and both readers of y all of x's; nothing is forced before one assumes
something of x, and then something of y."""


@pytest.mark.parametrize("model", [name for name, (_, kept) in MODELS.items() if kept is not ExternalOrder.REALTIME])
def test_a_store_that_lags_breaks_realtime_alone(model: str) -> None:
    serial = MODELS[model][0] is Isolation.SERIALIZABLE
    level = Level.SERIALIZABLE if serial else Level.SNAPSHOT
    committed = store_committed(Store(level=level, values=Values.REGISTERS, transactions=1_000, lag=100))
    assert held_up(committed, model).verdict is Verdict.VALID
    strict = "strict-serializable" if serial else "strong-snapshot-isolation"
    assert held_up(committed, strict).verdict is Verdict.INVALID


def test_what_is_too_much_for_the_solver_is_named() -> None:
    decision = decided(written(NEITHER_ORDER), "serializable", replace(DEMANDED, complete_steps=0))
    assert decision.verdict is Verdict.UNKNOWN
    assert set(decision.open[0]) & {1, 2} and set(decision.open[0]) & {3, 4}, "writers of x and of y"


def test_a_model_that_nobody_demanded_gets_less_work_once_the_demanded_one_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deciders, "BESIDE", replace(DEMANDED, complete_steps=0))
    history = written(NEITHER_ORDER)
    demanded = ConsistencyModel.SERIALIZABLE
    position, decisions = deciders.decide(history, demanded, LatticePosition())
    assert decisions[demanded].verdict is Verdict.INVALID and demanded in position.broken
    assert decisions[ConsistencyModel.REPEATABLE_READ].verdict is Verdict.UNKNOWN, "asked after the demanded one"


def test_what_was_established_until_a_decision_was_given_up_is_told() -> None:
    text = "w(z,1)\n" + NEITHER_ORDER
    with searching_until(0.0):
        decision = decided(written(text), "serializable")
    assert decision.verdict is Verdict.UNKNOWN and decision.established is not None
    assert decision.established.bound is Bound.TIME
    assert decision.established.components == 1
    assert decision.established.transactions >= 4, "the writers of x and y"
    assert decision.established.prefix >= 1, "the writer of z"
    with searching_until(1e12):
        assert decided(written(text), "serializable").verdict is Verdict.INVALID


@pytest.mark.parametrize("model", MODELS)
def test_no_order_is_begun_of_many_sessions_once_searches_are_over(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_CLOCK_CELLS", 0)
    with searching_until(0.0):
        decision = decided(written(NEITHER_ORDER), model)
    assert decision.verdict is Verdict.UNKNOWN and decision.established is not None
    assert (decision.established.bound, decision.established.choices) == (Bound.TIME, 0)
    assert decision.established.transactions == len(written(NEITHER_ORDER)) - 1 == len(decision.open[0])


@pytest.mark.parametrize("model", MODELS)
def test_a_decision_that_was_given_up_is_never_wrong_about_its_prefix(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_propagation, "PASSES", 0)
    monkeypatch.setattr(saturation, "SWEEPS", 1)
    monkeypatch.setattr(OrderSearch, "of", lambda *_: None)
    isolation, _ = MODELS[model]
    level, steps = (Level.SERIALIZABLE, 2_500) if isolation is Isolation.SERIALIZABLE else (Level.SNAPSHOT, 8_000)
    prefixes = []
    for seed in range(20):
        store = Store(
            level=level, values=Values.REGISTERS, transactions=400, sessions=100, keys=Keys(alive=30), seed=seed
        )
        committed = store_committed(store)
        decision = decided(committed, model, replace(DEMANDED, complete_steps=steps))
        if decision.established is not None:
            prefixes.append(decision.established.prefix)
            first = np.arange(decision.established.prefix + 1, dtype=np.int32)
            with pytest.MonkeyPatch.context() as whole:
                whole.setattr(saturation, "SWEEPS", 64)
                assert held_up(excerpt(committed, first), model).verdict is Verdict.VALID, seed
    assert len(prefixes) > 10 and max(prefixes) > 10, prefixes


@pytest.mark.parametrize("model", MODELS)
def test_what_only_cases_refute_is_refuted(model: str) -> None:
    committed = written(NEITHER_ORDER)
    decision = held_up(committed, model)
    assert decision.verdict is Verdict.INVALID
    assert decision.proof and decision.proof.cases
    assert all(case.cases for case in decision.proof.cases)
    assert held_up(written(NEITHER_ORDER.replace(" r(s,1)", "")), model).verdict is Verdict.VALID


def without_what_comes_before_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_propagation, "PASSES", 0)
    monkeypatch.setattr(saturation, "SWEEPS", 0)
    monkeypatch.setattr(OrderSearch, "of", lambda *_: None)


def test_the_solver_alone_decides_as_all_orders_do(monkeypatch: pytest.MonkeyPatch) -> None:
    without_what_comes_before_the_solver(monkeypatch)
    # With hardly any room it begins again, with more.
    monkeypatch.setattr(complete_search, "NOGOODS_AN_EVENT", 1)
    seen = agree(range(200, 280), 5)
    assert min(seen[model, verdict] for model in MODELS for verdict in (Verdict.VALID, Verdict.INVALID)) > 5


@thousands()
def test_the_solver_alone_decides_many_histories_as_all_orders_do(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_what_comes_before_the_solver(monkeypatch)
    agree(seeds, 6)


def test_a_refutation_of_too_many_cases_is_none_that_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refutation, "MOST_CASES", 2)
    decision = decided(written(NEITHER_ORDER), "serializable")
    assert decision.verdict is Verdict.INVALID and decision.proof is None


def test_a_replay_accepts_a_proof_and_none_with_a_changed_step_or_case() -> None:
    committed = written(NEITHER_ORDER)
    proof = decided(committed, "serializable").proof
    assert proof and proof.cases
    replay = Replay(committed, "serializable")
    assert replay.refutes(proof, [])
    made_up = replace(proof.steps[0], source=proof.steps[0].target, target=proof.steps[0].source)
    assert not replay.refutes(replace(proof, steps=(made_up, *proof.steps[1:])), [])
    assert not replay.refutes(replace(proof, cases=(proof.cases[0], proof.cases[0])), [])


def test_small_histories_are_decided_as_by_all_orders() -> None:
    seen = agree(range(100), 5)
    assert min(seen[model, verdict] for model in MODELS for verdict in (Verdict.VALID, Verdict.INVALID)) > 10


def test_what_short_paths_would_refute_clocks_and_the_solver_refute_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_propagation, "PASSES", 0)
    seen = agree(range(100, 180), 5)
    assert min(seen[model, Verdict.INVALID] for model in MODELS) > 10


@pytest.mark.parametrize(
    ("model", "violation"),
    [
        (model, violation)
        for model, (isolation, _) in MODELS.items()
        for violation in (Violation.WRITE_SKEW, Violation.LOST_UPDATE, Violation.LONG_FORK)
        if isolation is Isolation.SERIALIZABLE or violation is not Violation.WRITE_SKEW
    ],
)
def test_a_violation_among_busy_sessions_is_found_before_any_clock_is_made(
    model: str, violation: Violation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(total_order, "chained", None)
    serial = MODELS[model][0] is Isolation.SERIALIZABLE
    store = Store(
        level=Level.SERIALIZABLE if serial else Level.SNAPSHOT,
        values=Values.REGISTERS,
        transactions=3_000,
        sessions=500,
        keys=Keys(alive=50),
        violation=violation,
    )
    assert held_up(store_committed(store), model).verdict is Verdict.INVALID


def test_a_proof_about_an_excerpt_refutes_the_history() -> None:
    refuted = 0
    for seed in range(200):
        rng = random.Random(seed)
        whole = random_committed(rng, most=6)
        others = sorted(rng.sample(range(1, len(whole)), rng.randint(0, len(whole) - 1)))
        transactions = np.array([INITIAL, *others], dtype=np.int32)
        model = rng.choice(sorted(MODELS))
        decision = held_up(excerpt(whole, transactions), model)
        if decision.proof is not None:
            refuted += 1
            replay = Replay(whole, model)
            assert replay.refutes(of_the_whole(decision.proof, transactions, replay.width), []), (seed, model)
    assert refuted > 20
