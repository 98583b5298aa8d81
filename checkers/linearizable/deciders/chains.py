"""Clusters of the operations on one value of a register, and the chains that these form.

All operations on one value form a cluster, which must take effect without another cluster between them. A cas ties the
cluster of the value that it expects to the one of the value that it writes, so clusters form chains.

    0 write 1, 1 cas from 1 to 2, 2 read 2, 3 write 3

Here are two chains: the one of value 1, with value 2 behind it, and the one of value 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int64
from checkers.linearizable.deciders.register_functions import CAS, READ
from checkers.linearizable.deciders.register_values import Registers
from harness.compiled import compiled, inlined


class Clusters(NamedTuple):
    """By value: the read that ended first, the one that began last, and the cas that replaced it; NO_INDEX if none."""

    first_read: Int64
    last_read: Int64
    replaced_by: Int64
    unwritten: Int64
    """By register: the first operation that saw a value that no operation wrote."""
    replaced_twice: Int64
    """By register: two cas that replaced the same value; shape (registers, 2)."""


@compiled
def clusters(registers: Registers) -> Clusters:
    """Cost: O(n)."""
    values, count = len(registers.owner), registers.registers
    found = Clusters(
        np.full(values, NO_INDEX, dtype=np.int64),
        np.full(values, NO_INDEX, dtype=np.int64),
        np.full(values, NO_INDEX, dtype=np.int64),
        np.full(count, NO_INDEX, dtype=np.int64),
        np.full((count, 2), NO_INDEX, dtype=np.int64),
    )
    f, start, writer = registers.f, registers.start, registers.writer
    for i in range(len(f)):
        seen = registers.value[i] if f[i] == READ else registers.expected[i]
        if not registers.happened[i] or seen < 0:
            continue
        r = registers.owner[seen]
        first = found.unwritten[r]
        if writer[seen] < 0 and seen >= count and (first < 0 or start[i] < start[first]):
            found.unwritten[r] = i
        if f[i] == READ:
            _note_read(registers, found, seen, i)
        elif f[i] == CAS:
            _note_replacement(registers, found, seen, i)
    return found


@inlined
def _note_read(registers: Registers, found: Clusters, value: int, read: int) -> None:
    first, last = found.first_read[value], found.last_read[value]
    if first < 0 or registers.end[read] < registers.end[first]:
        found.first_read[value] = read
    if last < 0 or registers.start[read] > registers.start[last]:
        found.last_read[value] = read


@inlined
def _note_replacement(registers: Registers, found: Clusters, value: int, cas: int) -> None:
    start, other = registers.start, found.replaced_by[value]
    if other < 0:
        found.replaced_by[value] = cas
        return
    one = cas
    if start[other] < start[cas]:
        one, other = other, cas
    found.replaced_by[value] = one
    r = registers.owner[value]
    if found.replaced_twice[r, 1] < 0 or start[other] < start[found.replaced_twice[r, 1]]:
        found.replaced_twice[r, 0] = one
        found.replaced_twice[r, 1] = other


class Chains(NamedTuple):
    """The chains, by value. A chain is named by the value that it begins with."""

    first: Int64
    """The value that the chain of each value begins with; NO_INDEX in cycles."""
    depth: Int64
    """How many cas lie between that value and this one."""
    ended: Int64
    """By name of a chain: the operation that ended first; NO_INDEX for values that name no chain."""
    began: Int64
    """By name of a chain: the operation that began last."""
    circular: Int64
    """By register: the first operation to end in a cycle of cas operations."""
    late: Int64
    """By register: an operation, and another that ended before it began but must follow it; shape (registers, 2)."""


@compiled
def chains(registers: Registers, clusters: Clusters) -> Chains:
    """Cost: O(n)."""
    values, count = len(registers.owner), registers.registers
    found = Chains(
        np.full(values, NO_INDEX, dtype=np.int64),
        np.zeros(values, dtype=np.int64),
        np.full(values, NO_INDEX, dtype=np.int64),
        np.full(values, NO_INDEX, dtype=np.int64),
        np.full(count, NO_INDEX, dtype=np.int64),
        np.full((count, 2), NO_INDEX, dtype=np.int64),
    )
    for name in range(values):
        w = registers.writer[name]
        if w < 0 or not registers.happened[w] or registers.f[w] != CAS:
            _follow(registers, clusters, found, name)
    for value in range(values):
        if found.first[value] < 0:
            _note_circular(registers, clusters, found, value)
    return found


@inlined
def _follow(registers: Registers, clusters: Clusters, found: Chains, name: int) -> None:
    """Go along a chain from the value that it begins with: for each value first the write, then the reads, then the cas
    that replaces it."""
    start, end = registers.start, registers.end
    at, depth = name, 0
    soonest = latest = NO_INDEX
    while True:
        found.first[at] = name
        found.depth[at] = depth
        w = registers.writer[at]
        for early, last in ((w, w), (clusters.first_read[at], clusters.last_read[at])):
            if early < 0 or not registers.happened[early]:
                continue
            if latest >= 0 and start[latest] > end[early]:
                r = registers.owner[name]
                if found.late[r, 1] < 0 or end[early] < end[found.late[r, 1]]:
                    found.late[r, 0] = latest
                    found.late[r, 1] = early
            if soonest < 0 or end[early] < end[soonest]:
                soonest = early
            if latest < 0 or start[last] > start[latest]:
                latest = last
        swap = clusters.replaced_by[at]
        # If values are written twice, chains would never end.
        if swap < 0 or registers.writer[registers.value[swap]] != swap:
            break
        at = registers.value[swap]
        depth += 1
    found.ended[name] = soonest
    found.began[name] = latest


@inlined
def _note_circular(registers: Registers, clusters: Clusters, found: Chains, value: int) -> None:
    r = registers.owner[value]
    for i in (registers.writer[value], clusters.first_read[value]):
        if i >= 0 and (found.circular[r] < 0 or registers.end[i] < registers.end[found.circular[r]]):
            found.circular[r] = i
