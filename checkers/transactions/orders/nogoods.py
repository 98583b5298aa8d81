"""Sets of literals that cannot all hold together, each with its reason: what a search has learned.

A literal is one of the two alternatives of a choice, 2 * choice + alternative. A nogood either follows from the
history, as what closes a cycle, or from two others, of which each forbids one alternative of a choice.

Source: Dechter, Enhancement Schemes for Constraint Processing: Backjumping, Learning, and Cutset Decomposition,
Artificial Intelligence 41 (1990).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int8, Int32, Int64
from harness.compiled import compiled

CYCLE = -1
"""Stands in place of a choice: the nogood follows from the history."""
LITERALS, NOGOODS = range(2)
"""Places in `used`."""


class Nogoods(NamedTuple):
    literals: Int32
    """int32[room]: those of nogood n are literals[first[n]:first[n + 1]]."""
    first: Int64
    """int64[room + 2]"""
    of: Int32
    """int32[room]: the nogood that each literal belongs to."""
    older: Int32
    """int32[room]: where the same literal was learned before, or NO_INDEX."""
    newest: Int32
    """int32[literals that there can be]: where each was learned last, or NO_INDEX."""
    choice: Int32
    """int32[room + 1]: the choice whose alternatives are forbidden, or CYCLE."""
    reasons: Int32
    """int32[room + 1, 2]: the nogood that forbids either alternative, or a negative number where none need do."""
    used: Int64
    forgets: bool
    """Whether all others are forgotten if there is no room for another nogood; otherwise it is refused."""


def nogoods(choices: int, room: int, *, forgets: bool) -> Nogoods:
    return Nogoods(
        literals=np.empty(room, dtype=np.int32),
        first=np.zeros(room + 2, dtype=np.int64),
        of=np.empty(room, dtype=np.int32),
        older=np.empty(room, dtype=np.int32),
        newest=np.full(2 * choices, NO_INDEX, dtype=np.int32),
        choice=np.empty(room + 1, dtype=np.int32),
        reasons=np.empty((room + 1, 2), dtype=np.int32),
        used=np.zeros(2, dtype=np.int64),
        forgets=forgets,
    )


@compiled
def learned(nogoods: Nogoods, literals: Int32, choice: int, one: int, other: int) -> int:
    """The number of the nogood, or NO_INDEX where there is no room for it."""
    if nogoods.used[LITERALS] + len(literals) > len(nogoods.literals):
        if not nogoods.forgets:
            return NO_INDEX
        nogoods.used[:] = 0
        nogoods.newest[:] = NO_INDEX
    number, at = nogoods.used[NOGOODS], nogoods.used[LITERALS]
    for literal in literals:
        nogoods.literals[at], nogoods.of[at], nogoods.older[at] = literal, number, nogoods.newest[literal]
        nogoods.newest[literal] = at
        at += 1
    nogoods.first[number + 1] = at
    nogoods.choice[number], nogoods.reasons[number, 0], nogoods.reasons[number, 1] = choice, one, other
    nogoods.used[LITERALS], nogoods.used[NOGOODS] = at, number + 1
    return int(number)


@compiled
def forbidding(nogoods: Nogoods, taken: Int8, literal: int) -> int:
    """A nogood all of whose other literals hold, or NO_INDEX. `taken`: the alternative of each choice that holds."""
    at = nogoods.newest[literal]
    while at != NO_INDEX:
        number = nogoods.of[at]
        holds = True
        for i in range(nogoods.first[number], nogoods.first[number + 1]):
            other = nogoods.literals[i]
            if other != literal and taken[other >> 1] != other & 1:
                holds = False
                break
        if holds:
            return int(number)
        at = nogoods.older[at]
    return NO_INDEX
