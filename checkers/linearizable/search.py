"""Any register, decided by search (`decision`): its operations as numbered kinds, its values as states."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.decision import (
    LINEARIZABLE,
    NOT_LINEARIZABLE,
    UNDECIDED,
    Problem,
    decide,
)
from checkers.linearizable.kernel import OTHER, OVERWRITES, READS
from checkers.linearizable.operations import CAS, CAS_MISS, INITIAL, READ, WRITE, Operations

__all__ = ["LINEARIZABLE", "NOT_LINEARIZABLE", "UNDECIDED", "Searched", "register_problem", "search"]


@dataclass(frozen=True, kw_only=True)
class Searched:
    """How the search ended."""

    outcome: int
    stuck_at: int
    """NOT_LINEARIZABLE: the operation that fits nowhere. UNDECIDED: the one that was not decided any more."""
    possible: tuple[int, ...]
    """Numbers of the values that the register could have had before it completed."""
    explored: int
    reason: str = ""


def search(operations: Operations, *, limit: int) -> Searched:
    """Decide one register; at most `limit` configurations are explored."""
    decision = decide(register_problem(operations), limit=limit)
    return Searched(
        outcome=decision.outcome,
        stuck_at=decision.stuck_at,
        possible=tuple(sorted(value for value in decision.possible if isinstance(value, int))),
        explored=decision.explored,
        reason=decision.reason,
    )


def register_problem(operations: Operations) -> Problem:
    identity = np.stack((operations.f, operations.value, operations.expected)).astype(np.int64)
    kinds, kind = np.unique(identity, axis=1, return_inverse=True)
    f, value, expected = (row.tolist() for row in kinds)

    def step(state: Hashable, number: int) -> tuple[Hashable, ...]:
        if f[number] == WRITE:
            return (value[number],)
        if f[number] == CAS_MISS:
            return () if state == expected[number] else (state,)
        return (value[number],) if state == (value if f[number] == READ else expected)[number] else ()

    does = np.where(kinds[0] == WRITE, OVERWRITES, OTHER).astype(np.int64)
    does[(kinds[0] == READ) | (kinds[0] == CAS_MISS) | (kinds[1] == kinds[2])] = READS
    return Problem(
        start=operations.start,
        end=operations.end,
        kind=kind.reshape(-1).astype(np.int64),
        does=does,
        over=np.where(does == READS, -1, _last_told(operations, kinds)[kinds[1]]),
        initial=INITIAL,
        step=step,
    )


def _last_told(operations: Operations, kinds: Int64) -> Int64:
    """For each value the completion of the last operation that could tell that it was there; -1 if there is none.

    An indefinite cas tells the value that it expects as long as the one that it writes may be told.
    """
    definite = np.flatnonzero(operations.definite)
    last = np.full(len(operations.values), -1, dtype=np.int64)
    reads = definite[operations.f[definite] == READ]
    swaps = definite[operations.f[definite] == CAS]
    np.maximum.at(last, operations.value[reads], operations.end[reads])
    np.maximum.at(last, operations.expected[swaps], operations.end[swaps])
    misses = definite[operations.f[definite] == CAS_MISS]
    for expected in np.unique(operations.expected[misses]):
        others = np.arange(len(last)) != expected
        last[others] = np.maximum(last[others], operations.end[misses[operations.expected[misses] == expected]].max())
    misses = definite[operations.f[definite] == CAS_MISS]
    for expected in np.unique(operations.expected[misses]):
        others = np.arange(len(last)) != expected
        last[others] = np.maximum(last[others], operations.end[misses[operations.expected[misses] == expected]].max())
    passed_on = kinds[:, kinds[0] == CAS]
    while True:
        before = last.copy()
        np.maximum.at(last, passed_on[2], last[passed_on[1]])
        if np.array_equal(before, last):
            return last
