"""A history with some of its transactions only: no order explains the whole of it unless one explains the excerpt.

Reads from writers that are left out are left out as well, so a proof that refutes an excerpt refutes the history.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from checkers.kernels.columns import Int32
from checkers.transactions.evidence.proof import Proof, ProofStep
from checkers.transactions.history.committed import INITIAL, WRITES, Committed


def excerpt(committed: Committed, transactions: Int32) -> Committed:
    """The excerpt with these transactions, which ascend and begin with INITIAL. Their places here are their numbers."""
    number = np.full(len(committed), -1, dtype=np.int32)
    number[transactions] = np.arange(len(transactions), dtype=np.int32)
    transaction, writer = committed.transaction, committed.writer
    kept = (number[transaction] >= 0) & ((writer == WRITES) | (number[writer] >= 0))
    counts = np.bincount(number[transaction[kept]], minlength=len(transactions))
    known = committed.version_edges
    known = known[(number[known[:, 1]] >= 0) & (number[known[:, 2]] >= 0)]
    return Committed(
        start=committed.start[transactions],
        end=committed.end[transactions],
        session=committed.session[transactions],
        first=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        key=committed.key[kept],
        writer=np.where(writer[kept] == WRITES, WRITES, number[writer[kept]]).astype(np.int32),
        version_edges=np.stack((known[:, 0], number[known[:, 1]], number[known[:, 2]]), axis=1).astype(np.int32),
    )


def of_the_whole(proof: Proof, transactions: Int32, width: int) -> Proof:
    """The proof about an excerpt as one about the whole history."""
    return replace(
        proof,
        steps=tuple(_of_the_whole(step, transactions, width) for step in proof.steps),
        cases=proof.cases
        and (of_the_whole(proof.cases[0], transactions, width), of_the_whole(proof.cases[1], transactions, width)),
    )


def _of_the_whole(step: ProofStep, transactions: Int32, width: int) -> ProofStep:
    def transaction(number: int) -> int:
        return number if number <= INITIAL else int(transactions[number])

    def event(number: int) -> int:
        return transaction(number // width) * width + number % width

    return replace(
        step,
        source=event(step.source),
        target=event(step.target),
        reader=transaction(step.reader),
        writer=transaction(step.writer),
    )
