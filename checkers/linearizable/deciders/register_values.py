"""Registers in numbers: their values, the operations that wrote them, and which operations certainly happened.

Many registers are numbered at once, so that a million small ones cost no more than one big one. For each register the
first fault in time is found, so it does not depend on the order in which operations are given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NONE, Bool, Int8, Int64
from checkers.kernels.hashing import place_of
from checkers.linearizable.deciders.register_functions import CAS, CAS_MISS, READ
from checkers.linearizable.values import NEVER
from harness.compiled import compiled


class Registers(NamedTuple):
    """Operations on registers; values are numbered, first the initial one of each register."""

    registers: int
    """How many registers there are."""
    start: Int64
    """When each operation was invoked, as a history index. All fields up to `expected` are by operation."""
    end: Int64
    """When each operation completed; NEVER if indefinite."""
    f: Int8
    value: Int64
    """The number of the value read or written; NO_INDEX for a read without a result."""
    expected: Int64
    """The number of the value that a cas expects, or did not find; NO_INDEX otherwise."""
    owner: Int64
    """The register of each value."""
    writer: Int64
    """The operation that wrote each value."""
    ambiguous: Int64
    """By register: the first operation that writes a value that was written before, or is a failed cas that counts."""
    happened: Bool
    """By operation: whether it certainly happened, because it is definite or one that happened saw its value."""


def numbered(
    *,
    count: int,
    register: Int64,
    start: Int64,
    end: Int64,
    f: Int8,
    value: Int64,
    expected: Int64,
    initial: int,
) -> Registers:
    """The registers of operations in any order, with values as recorded, NONE for null. Registers are numbered from 0
    to `count`.

    An indefinite read has no result. Neither has a read of null if registers begin with another value: its result was
    left out.
    """
    mute = (f == READ) & (end == NEVER)
    if initial != NONE:
        mute |= (f == READ) & (value == NONE)
    values, expects, owner = _numbers(register, f, value, expected, mute, initial, count)
    writer, ambiguous = _writers(start, f, values, owner, count)
    happened = _happened(end, f, values, expects, writer)
    return Registers(count, start, end, f, values, expects, owner, writer, ambiguous, happened)


@compiled
def _numbers(
    register: Int64, f: Int8, value: Int64, expected: Int64, mute: Bool, initial: int, count: int
) -> tuple[Int64, Int64, Int64]:
    """(numbers of values, numbers of expected values, the register of each value). Cost: O(n), by hashing."""
    most = count + len(f)
    for i in range(len(f)):
        if f[i] >= CAS:
            most += 1
    capacity = 16
    while capacity < 2 * most:
        capacity *= 2
    slots = np.full(capacity, -1, dtype=np.int64)
    owner = np.empty(most, dtype=np.int64)
    known = np.empty(most, dtype=np.int64)
    values = np.full(len(f), -1, dtype=np.int64)
    expects = np.full(len(f), -1, dtype=np.int64)
    found = 0
    for step in range(count + 2 * len(f)):
        if step < count:
            r, v = step, initial
        else:
            i = (step - count) >> 1
            is_expected = (step - count) & 1 == 1
            if mute[i] or (is_expected and f[i] < CAS):
                continue
            r, v = register[i], expected[i] if is_expected else value[i]
        at = place_of(v, r, capacity)
        while slots[at] >= 0 and (known[slots[at]] != v or owner[slots[at]] != r):
            at = (at + 1) & (capacity - 1)
        if slots[at] < 0:
            slots[at] = found
            owner[found] = r
            known[found] = v
            found += 1
        if step >= count:
            if is_expected:
                expects[i] = slots[at]
            else:
                values[i] = slots[at]
    return values, expects, owner[:found].copy()


@compiled
def _writers(start: Int64, f: Int8, value: Int64, owner: Int64, count: int) -> tuple[Int64, Int64]:
    writer = np.full(len(owner), -1, dtype=np.int64)
    ambiguous = np.full(count, -1, dtype=np.int64)
    for i in range(len(f)):
        v = value[i]
        if f[i] == READ or v < 0:
            continue
        doubtful = -1
        if f[i] == CAS_MISS or v < count:
            doubtful = i
        elif writer[v] < 0:
            writer[v] = i
        elif start[writer[v]] < start[i]:
            doubtful = i
        else:
            doubtful, writer[v] = writer[v], i
        if doubtful >= 0:
            first = ambiguous[owner[v]]
            if first < 0 or start[doubtful] < start[first]:
                ambiguous[owner[v]] = doubtful
    return writer, ambiguous


@compiled
def _happened(end: Int64, f: Int8, value: Int64, expected: Int64, writer: Int64) -> Bool:
    happened: Bool = (end != NEVER) & (value >= 0)
    for i in range(len(f)):
        if end[i] == NEVER or value[i] < 0:
            continue
        seen = value[i] if f[i] == READ else expected[i]
        while seen >= 0:
            w = writer[seen]
            if w < 0 or happened[w]:
                break
            happened[w] = True
            seen = expected[w]
    return happened
