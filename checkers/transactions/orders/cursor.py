"""Cursor stability: no version comes between the one that a transaction read and the one that it then wrote.

For keys that a transaction both reads and writes this is what serializability demands. All other reads only have to
come behind the write that they read from, as if each were of a key of its own that no other transaction writes.

Source: Adya (1999), PL-CS: G1 and G-cursor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.evidence.proof import Because, Decision, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL, WRITES, Committed
from checkers.transactions.orders.bounds import DEMANDED, Bounds
from checkers.transactions.orders.total_order import decided
from harness.compiled import compiled


def cursor_stability_decided(committed: Committed, bounds: Bounds = DEMANDED) -> Decision:
    """The decision, whose order is one of transactions. In it no version comes between the one that a transaction read
    and the one that it wrote; other reads may be of earlier versions."""
    updates = _updates(committed.first, committed.key, committed.writer)
    plain = np.flatnonzero((committed.writer > INITIAL) & ~updates)
    keys = int(committed.key.max(initial=-1)) + 1
    decision = decided(_loosened(committed, updates, plain, keys), "serializable", bounds)
    if decision.proof is None:
        return decision
    return replace(decision, proof=_with_keys(decision.proof, keys, committed.key[plain]))


@compiled
def _updates(first: Int64, key: Int32, writer: Int32) -> Bool:
    """Which reads are of keys that their transaction writes."""
    found = np.zeros(len(key), dtype=np.bool_)
    for t in range(len(first) - 1):
        for i in range(first[t], first[t + 1]):
            if writer[i] == WRITES:
                continue
            for j in range(first[t], first[t + 1]):
                found[i] |= writer[j] == WRITES and key[j] == key[i]
    return found


def _loosened(committed: Committed, updates: Bool, plain: Int64, keys: int) -> Committed:
    """The history in which each plain read has a key of its own, numbered from `keys` on, which its writer writes.
    Plain reads of initial versions are left out."""
    transaction = committed.transaction
    kept = np.flatnonzero(updates | (committed.writer == WRITES))
    own = np.arange(keys, keys + len(plain), dtype=np.int32)
    of = np.concatenate([transaction[kept], transaction[plain], committed.writer[plain]])
    key = np.concatenate([committed.key[kept], own, own])
    writes = np.full(len(plain), WRITES, dtype=np.int32)
    writer = np.concatenate([committed.writer[kept], committed.writer[plain], writes])
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=len(committed))
    return replace(
        committed,
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        key=key[order].astype(np.int32),
        writer=writer[order].astype(np.int32),
    )


def _with_keys(proof: Proof, keys: int, named: Int32) -> Proof:
    """The proof with the keys that were really read."""
    steps = tuple(_with_key(step, keys, named) for step in proof.steps)
    cases = proof.cases and (_with_keys(proof.cases[0], keys, named), _with_keys(proof.cases[1], keys, named))
    return replace(proof, steps=steps, cases=cases)


def _with_key(step: ProofStep, keys: int, named: Int32) -> ProofStep:
    if step.key < keys:
        return step
    assert step.because is Because.READ, "only its writer writes a read's own key"
    return replace(step, key=int(named[step.key - keys]))
