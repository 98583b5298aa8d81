"""Decisions of parallel snapshot isolation against all orders of versions; their orders and proofs hold as well."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from transaction_stores import Keys, Level, Store, Values, Violation
from transaction_stores import committed as store_committed

from checkers.api.verdict import Verdict
from checkers.transactions.evidence.certificate import Names, certificate
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL, NEVER, Committed
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.orders import bounded_propagation, parallel_snapshot, saturation
from checkers.transactions.orders.parallel_snapshot import MODELS, parallel_snapshot_decided
from checkers.transactions.orders.windowed_search import OrderSearch
from checkers.transactions.verify import verified
from tests.references.commit_orders import History, allowed, overwritten, paths, then
from tests.references.history_language import write_rows
from tests.references.thousands import thousands
from tests.references.transaction_histories import (
    Transaction,
    committed,
    committed_of,
    history_rows,
    random_committed,
    random_lists,
    random_registers,
)

PLAIN, SESSIONS = (
    ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION,
    ConsistencyModel.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION,
)


def explains(model: ConsistencyModel, rows: Committed, order: list[int]) -> bool:
    """Whether versions in this order make no cycle of dependencies with at most one anti-dependency."""
    history = History(rows)
    place = {t: i for i, t in enumerate(order)}
    if sorted(order) != list(history.nodes) or order[0] != INITIAL:
        return False
    versions = {k: tuple(sorted(history.writers(k), key=place.__getitem__)) for k in history.keys}
    dependencies = history.read | history.version_pairs | overwritten(versions)
    dependencies |= history.session if model is SESSIONS else frozenset()
    anti = {(r, u) for r, k, w in history.reads for u in versions[k][versions[k].index(w) + 1 :][:1] if u != r}
    sees = paths(dependencies)
    in_order = all(place[t] < place[u] for t, u in dependencies)
    return in_order and all(t != u for t, u in sees | then(frozenset(anti), sees))


def convinces(model: ConsistencyModel, rows: Committed, proof: Proof, before: tuple[ProofStep, ...] = ()) -> bool:
    """Whether each step follows, and they end in cycles."""
    history = History(rows)
    steps = before + proof.steps
    for number in range(len(before), len(steps)):
        if not follows(model, history, steps, number, is_case=number == len(before) > 0):
            return False
    if proof.cases is None:
        return bool(proof.cycle) and joined(steps, proof.cycle, steps[proof.cycle[0]].source) == (
            steps[proof.cycle[0]].source
        )
    one, other = (case.steps[0] for case in proof.cases)
    return (one.because, one.source, one.target, one.key) == (
        Because.CASE,
        other.target,
        other.source,
        other.key,
    ) and all(convinces(model, rows, case, steps) for case in proof.cases)


def joined(steps: tuple[ProofStep, ...], numbers: tuple[int, ...], begin: int) -> int | None:
    """Where the path leads; None if it is none."""
    for number in numbers:
        if steps[number].source != begin:
            return None
        begin = steps[number].target
    return begin


def follows(
    model: ConsistencyModel, history: History, steps: tuple[ProofStep, ...], number: int, *, is_case: bool
) -> bool:
    step = steps[number]
    pair = step.source, step.target
    match step.because:
        case Because.INITIAL:
            return step.source == INITIAL != step.target
        case Because.READ:
            return (step.target, step.key, step.source) in history.reads
        case Because.SESSION:
            return model is SESSIONS and pair in history.session and history.rows.end[step.source] != NEVER
        case Because.VERSION_ORDER:
            return pair in history.version_pairs
        case Because.CASE:
            return is_case and all(history.writes(t, step.key) for t in pair) and pair[0] != pair[1]
        case Because.OVERWRITTEN:
            return (
                (step.reader, step.key, step.writer) in history.reads
                and step.target == step.writer
                and step.source not in (step.reader, step.writer)
                and history.writes(step.source, step.key)
                and all(earlier < number for earlier in step.path)
                and all(steps[earlier].because is not Because.INITIAL for earlier in step.path)
                and joined(steps, step.path, step.source) == step.reader
            )
    return False


def test_an_order_need_not_put_readers_before_what_overwrites() -> None:
    history = committed(
        """
        r(x,-) r(y,-) w(z,3) | w(x,7) w(y,9) r(z,3) | r(w,4) r(y,9)
        w(w,4) w(z,5) r(x,-) | r(y,-) r(x,-) w(z,15) | r(z,15) r(w,4) w(x,21) r(y,-)
        """
    )
    for model in MODELS:
        decision = parallel_snapshot_decided(history, model)
        assert decision.order is not None and explains(model, history, decision.order.tolist())


def judge(seeds: range) -> Counter[tuple[ConsistencyModel, Verdict, bool]]:
    seen: Counter[tuple[ConsistencyModel, Verdict, bool]] = Counter()
    for seed in seeds:
        history = random_committed(random.Random(seed))
        for model in (PLAIN, SESSIONS):
            decision = parallel_snapshot_decided(history, model)
            expected = Verdict.VALID if allowed(model.value, history) else Verdict.INVALID
            assert decision.verdict is expected, (seed, model)
            if decision.order is not None:
                assert explains(model, history, decision.order.tolist()), (seed, model)
            else:
                assert decision.proof is not None and convinces(model, history, decision.proof), (seed, model)
            seen[model, decision.verdict, decision.proof is not None and decision.proof.cases is not None] += 1
    return seen


def test_decisions_are_those_of_all_orders_of_versions() -> None:
    seen = judge(range(400))
    assert len(seen) == 6 and min(seen.values()) >= 2, seen


@thousands()
def test_decisions_are_those_of_all_orders_of_versions_in_many_histories(seeds: range) -> None:
    judge(seeds)


@pytest.mark.parametrize(("draw", "workload"), [(random_registers, "rw-register"), (random_lists, "list-append")])
def test_certificates_are_verified(draw: Callable[..., list[Transaction]], workload: str, tmp_path: Path) -> None:
    verdicts = set()
    for seed in range(40):
        transactions = draw(random.Random(seed))
        path = write_rows(history_rows(transactions), TRANSACTION, tmp_path / f"{seed}.parquet")
        rows = committed_of(transactions)
        keys = sorted({key for t in transactions for _, key, _ in t.operations})
        for model in MODELS:
            decision = parallel_snapshot_decided(rows, model)
            names = Names(model=model.value, workload=workload, start=rows.start, keys=keys)
            verified(json.loads(certificate(decision, names)), path)
            verdicts.add(decision.verdict)
    assert verdicts == {Verdict.VALID, Verdict.INVALID}


def test_every_model_of_this_kind_is_decided() -> None:
    assert set(MODELS) == {ConsistencyModel.CONSISTENT_VIEW, PLAIN, SESSIONS}


@pytest.mark.parametrize(
    ("text", "model", "verdict"),
    [
        ("w(x,1)\n w(y,1)\n r(x,1) r(y,-)\n r(x,-) r(y,1)", PLAIN, Verdict.VALID),
        ("r(x,-) w(x,1)\n r(x,-) w(x,2)", PLAIN, Verdict.INVALID),
        ("w(x,1)\n r(x,1) | w(y,1)\n r(y,1) | r(x,-)", PLAIN, Verdict.VALID),
        ("w(x,1)\n r(x,1) | w(y,1)\n r(y,1) | r(x,-)", SESSIONS, Verdict.INVALID),
    ],
)
def test_textbook_histories(text: str, model: ConsistencyModel, verdict: Verdict) -> None:
    assert parallel_snapshot_decided(committed(text), model).verdict is verdict


def test_a_proof_without_one_of_its_steps_does_not_convince() -> None:
    for seed in range(60):
        history = random_committed(random.Random(seed))
        proof = parallel_snapshot_decided(history, PLAIN).proof
        if proof is not None and proof.cycle:
            assert convinces(PLAIN, history, proof)
            assert not convinces(PLAIN, history, Proof(steps=proof.steps, cycle=proof.cycle[1:]))


@pytest.mark.parametrize("violation", [Violation.LOST_UPDATE, Violation.CAUSALITY])
def test_a_violation_among_busy_sessions_is_found_in_its_surroundings(violation: Violation) -> None:
    store = Store(
        level=Level.SNAPSHOT,
        values=Values.REGISTERS,
        transactions=2_000,
        sessions=500,
        keys=Keys(alive=50),
        violation=violation,
    )
    rows = store_committed(store)
    for model in (PLAIN, SESSIONS):
        decision = parallel_snapshot_decided(rows, model)
        assert decision.verdict is Verdict.INVALID
        assert decision.proof and convinces(model, rows, decision.proof)


@pytest.mark.parametrize("sweeps", [0, saturation.SWEEPS])
def test_without_what_is_tried_first_decisions_are_those_of_all_orders_of_versions(
    sweeps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saturation, "SWEEPS", sweeps)
    monkeypatch.setattr(bounded_propagation, "PASSES", 0)
    monkeypatch.setattr(parallel_snapshot, "_lost_update", lambda accesses: np.zeros(0, dtype=np.int32))
    monkeypatch.setattr(OrderSearch, "of", lambda *_: None)
    seen = judge(range(400, 800))
    assert len(seen) == 6 and min(seen.values()) >= 2, seen


@pytest.mark.parametrize("model", [PLAIN, SESSIONS])
def test_an_order_of_snapshots_of_many_busy_sessions_is_one_of_parallel_snapshots(
    model: ConsistencyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_snapshot, "chained", None)
    store = Store(
        level=Level.SNAPSHOT, values=Values.REGISTERS, transactions=300, sessions=60, keys=Keys(alive=10), lag=20
    )
    rows = store_committed(store)
    decision = parallel_snapshot_decided(rows, model)
    assert decision.order is not None and explains(model, rows, decision.order.tolist())
