"""Every answer of a complete decider is certified, and the certificate verified; what it is not of is refuted.

An order that has been tampered with may still explain the history, which its definition decides when nothing but that
order is left. A proof is tried on histories that allow the model, and an order at models that the history breaks.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkers.api.verdict import Verdict
from checkers.transactions.evidence.certificate import Names, certificate
from checkers.transactions.evidence.explain import explained_proof
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.evidence.render import because
from checkers.transactions.history.committed import WRITES, Committed
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.orders.cursor import cursor_stability_decided
from checkers.transactions.orders.parallel_snapshot import MODELS as PARALLEL
from checkers.transactions.orders.parallel_snapshot import parallel_snapshot_decided
from checkers.transactions.orders.total_order import MODELS as ORDERED
from checkers.transactions.orders.total_order import decided
from checkers.transactions.orders.weak.levels import LEVELS, explaining_order, weak_levels
from checkers.transactions.verify import DEMANDS, Refuted, verified_against
from checkers.transactions.verify.demands import Family, Seen
from checkers.transactions.verify.history import TransactionHistory, read_history
from tests.references.commit_orders import allowed
from tests.references.history_language import write_rows
from tests.references.thousands import thousands
from tests.references.transaction_histories import (
    Transaction,
    committed_of,
    history_rows,
    random_lists,
    random_registers,
)


def weakly_decided(committed: Committed, level: str) -> Decision:
    decision = weak_levels(committed, [level])[level]
    valid = decision.verdict is Verdict.VALID
    return replace(decision, order=explaining_order(committed, level)) if valid else decision


def _parallel(committed: Committed, model: str) -> Decision:
    return parallel_snapshot_decided(committed, ConsistencyModel(model))


DECIDERS: dict[str, Callable[[Committed, str], Decision]] = {
    **dict.fromkeys(ORDERED, decided),
    **dict.fromkeys(LEVELS, weakly_decided),
    **{model.value: _parallel for model in PARALLEL},
    "cursor-stability": lambda committed, _: cursor_stability_decided(committed),
}


def drawn(rng: random.Random, most: int) -> tuple[list[Transaction], Committed]:
    draw = rng.choice((random_registers, random_registers, random_lists))
    transactions = draw(rng, most=most)
    return transactions, committed_of(transactions)


def names_of(model: str, transactions: list[Transaction], committed: Committed, history: TransactionHistory) -> Names:
    keys = sorted({key for t in transactions for _, key, _ in t.operations})
    workload = "list-append" if history.lists else "rw-register"
    return Names(model=model, workload=workload, start=committed.start, keys=keys)


def refuted(certificate: Any, history: TransactionHistory) -> bool:
    try:
        verified_against(certificate, history)
    except Refuted:
        return True
    return False


def one_order(committed: Committed, order: list[int], model: str) -> Committed:
    """The same transactions, where no order but this one keeps what is known. Where only the order of versions counts,
    nothing is known of transactions that write no key in common: it would count as seen."""
    of_start = {start: number for number, start in enumerate(committed.start.tolist())}
    numbers = [0, *(of_start[start] for start in order)]
    neighbours = [(0, numbers)]
    if DEMANDS[model].seen is Seen.VERSIONS:
        pairs = set(zip(committed.key.tolist(), committed.transaction.tolist(), committed.writer.tolist(), strict=True))
        keys = sorted({key for key, _, _ in pairs})
        neighbours = [(key, [0, *(n for n in numbers[1:] if (key, n, WRITES) in pairs)]) for key in keys]
    known = [(key, u, v) for key, writers in neighbours for u, v in pairwise(writers)]
    return replace(
        committed,
        version_edges=np.concatenate((committed.version_edges, np.array(known, dtype=np.int32).reshape(-1, 3))),
    )


class Judge:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.proofs: dict[str, list[Any]] = defaultdict(list)
        self.counts: Counter[str] = Counter()

    def judge(self, seed: int, models: list[str], most: int) -> None:
        rng = random.Random(seed)
        transactions, committed = drawn(rng, most)
        path = write_rows(history_rows(transactions), TRANSACTION, self.directory / "history.parquet")
        lists = any(f == "append" or isinstance(value, tuple) for t in transactions for f, _, value in t.operations)
        history = read_history(path, lists=lists)
        for model in models:
            decision = DECIDERS[model](committed, model)
            names = names_of(model, transactions, committed, history)
            if decision.order is None and decision.proof is None:
                self.counts[f"{decision.verdict.value}, uncertified"] += 1
                continue
            stated = json.loads(certificate(decision, names))
            verified_against(stated, history)
            self.counts[decision.verdict.value] += 1
            if decision.verdict is Verdict.VALID:
                self.tamper_with_order(rng, stated, committed, history)
            else:
                assert decision.proof is not None
                assert because(explained_proof(decision.proof, names, {}))
                self.proofs[model] = [*self.proofs[model][-2:], stated]
                self.counts["weaker steps"] += self.tamper_with_proof(rng, stated, history)

    def tamper_with_order(
        self, rng: random.Random, stated: Any, committed: Committed, history: TransactionHistory
    ) -> None:
        model, order = stated["model"], stated["order"]
        for proof in self.proofs[model]:
            assert refuted(proof, history)
        for forged in (order[1:], [*order, *order[:1]], [*order, history.start[0].item() + 10_000]):
            assert not order or refuted({**stated, "order": forged}, history)
        swapped = list(order)
        for _ in range(rng.randint(1, 3)):
            if len(order) > 1:
                i, j = rng.sample(range(len(order)), 2)
                swapped[i], swapped[j] = swapped[j], swapped[i]
        if refuted({**stated, "order": swapped}, history):
            self.counts["refuted orders"] += 1
            return
        if DEMANDS[model].family is Family.SNAPSHOT:
            swapped = [int(event[1:]) for event in swapped if event[0] == "c"]
        silent = set(swapped) - set(committed.start.tolist())
        assert not silent and allowed(model, one_order(committed, swapped, model)), (stated, swapped)

    def tamper_with_proof(self, rng: random.Random, stated: Any, history: TransactionHistory) -> int:
        """How many changes are not refuted: a proof may be longer than it need be, and has other ways."""
        accepted = 0
        for name, value in (("verdict", "valid"), ("order", [])):
            assert refuted({**stated, "verdict": "valid", name: value}, history)
        blocks = stated["proof"]
        assert refuted({**stated, "proof": blocks[:-1]}, history)
        for _ in range(4):
            forged = json.loads(json.dumps(blocks))
            block = rng.choice(forged)
            step = rng.choice(block["steps"]) if block["steps"] else {}
            change = rng.choice(("drop", "source", "target", "key", "reader", "writer", "path", "because", "cycle"))
            if change == "drop" and block["steps"]:
                block["steps"].remove(step)
            elif change == "cycle" and "cycle" in block:
                block["cycle"] = block["cycle"][1:]
            elif change in step:
                others = [other.get(change) for some in forged for other in some["steps"]]
                step[change] = rng.choice(others)
            accepted += forged != blocks and not refuted({**stated, "proof": forged}, history)
        return accepted


def judge_all(seeds: range, directory: Path, *, models: int, most: int) -> Counter[str]:
    judge = Judge(directory)
    for seed in seeds:
        judge.judge(seed, random.Random(seed).sample(sorted(DECIDERS), models), most)
    return judge.counts


def test_answers_are_certified_and_verified(tmp_path: Path) -> None:
    said = judge_all(range(80), tmp_path, models=5, most=5)
    assert said["valid"] > 100 and said["invalid"] > 30
    assert said["refuted orders"] > said["valid"] / 3
    assert said["weaker steps"] < said["invalid"] / 2


@thousands()
def test_many_answers_are_certified_and_verified(seeds: range, tmp_path: Path) -> None:
    said = judge_all(seeds, tmp_path, models=4, most=6)
    assert said["valid"] > len(seeds) // 2 and said["invalid"] > len(seeds) // 4


@pytest.mark.slow
def test_answers_of_larger_histories_are_certified_and_verified(tmp_path: Path) -> None:
    """Without their definitions, which try all orders."""
    judge = Judge(tmp_path)
    judge.tamper_with_order = lambda *arguments: None  # type: ignore[method-assign]
    for seed in range(100):
        judge.judge(seed, sorted(DECIDERS), 30)
    assert judge.counts["valid"] > 50 and judge.counts["invalid"] > 50
