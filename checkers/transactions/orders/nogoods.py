"""Literals that cannot all hold together: what a search has learned, kept until there is no room for more.

A literal is one of the two alternatives of a choice, 2 * choice + alternative.

Source: Dechter, Enhancement Schemes for Constraint Processing: Backjumping, Learning, and Cutset Decomposition,
Artificial Intelligence 41 (1990).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int8, Int32, Int64
from harness.compiled import compiled

LITERALS, NOGOODS = range(2)
"""In `used`."""


class Nogoods(NamedTuple):
    literals: Int32
    """int32[room]: of nogood n those in first[n]:first[n + 1];"""
    first: Int64
    """int64[room + 1]"""
    of: Int32
    """int32[room]: the nogood that each of them belongs to;"""
    older: Int32
    """int32[room]: where the same literal was learned before, or NO_INDEX;"""
    newest: Int32
    """int32[literals that there can be]: and where it was learned last."""
    used: Int64


def nogoods(choices: int, room: int) -> Nogoods:
    return Nogoods(
        literals=np.empty(room, dtype=np.int32),
        first=np.zeros(room + 1, dtype=np.int64),
        of=np.empty(room, dtype=np.int32),
        older=np.empty(room, dtype=np.int32),
        newest=np.full(2 * choices, NO_INDEX, dtype=np.int32),
        used=np.zeros(2, dtype=np.int64),
    )


@compiled
def learned(nogoods: Nogoods, literals: Int32) -> int:
    """The number of the nogood. Where there is no room for it, all others are forgotten."""
    if nogoods.used[LITERALS] + len(literals) > len(nogoods.literals):
        nogoods.used[:] = 0
        nogoods.newest[:] = NO_INDEX
    number, at = nogoods.used[NOGOODS], nogoods.used[LITERALS]
    for literal in literals:
        nogoods.literals[at], nogoods.of[at], nogoods.older[at] = literal, number, nogoods.newest[literal]
        nogoods.newest[literal] = at
        at += 1
    nogoods.first[number + 1] = at
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
