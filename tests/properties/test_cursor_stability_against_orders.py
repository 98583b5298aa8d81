"""Cursor stability of random histories, against all orders of the versions of each key."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from checkers.api.verdict import Verdict
from checkers.transactions.evidence.proof import Because, Proof
from checkers.transactions.history.committed import WRITES, Committed
from checkers.transactions.orders.cursor import cursor_stability_decided
from tests.references.commit_orders import allowed
from tests.references.thousands import thousands
from tests.references.transaction_histories import random_committed


def reads_named(committed: Committed, proof: Proof) -> bool:
    """Every READ step is one of the history's."""
    reads = {
        (int(writer), int(reader), int(key))
        for reader, key, writer in zip(committed.transaction, committed.key, committed.writer, strict=True)
        if writer != WRITES
    }
    named = {(step.source, step.target, step.key) for step in proof.steps if step.because is Because.READ}
    return named <= reads and all(reads_named(committed, case) for case in proof.cases or ())


def judged_alike(seeds: range) -> Counter[Verdict]:
    verdicts: Counter[Verdict] = Counter()
    for seed in seeds:
        committed = random_committed(random.Random(seed))
        decision = cursor_stability_decided(committed)
        expected = Verdict.VALID if allowed("cursor-stability", committed) else Verdict.INVALID
        assert decision.verdict is expected, seed
        if decision.proof is not None:
            assert reads_named(committed, decision.proof), seed
        else:
            assert decision.order is not None
            assert np.array_equal(np.sort(decision.order), np.arange(len(committed))), seed
        verdicts[expected] += 1
    return verdicts


def test_random_histories_are_decided_as_all_orders_decide() -> None:
    verdicts = judged_alike(range(300))
    assert min(verdicts.values()) > 15


@thousands()
def test_many_random_histories_are_decided_as_all_orders_decide(seeds: range) -> None:
    judged_alike(seeds)
