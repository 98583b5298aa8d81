"""Registers in numbers: their values, who wrote them, the chains that these form, and the zones of the chains.

It takes many registers at once, so that a million small ones cost no more than a big one. Every fault is told by
register, the first in time, so that it does not depend on the order of the operations.

All operations on one value form a cluster, which must take effect without another cluster between; a cas ties the
cluster of the value that it expects to the one that it writes, so that clusters form chains. What must be shown is that
chains can be put in a row.

A chain must come before another if one of its operations ended before one of the other's began: if the least end of
the one is below the greatest start of the other. Such a relation has a cycle only if two chains are each before the
other, and that is seen from their zones: [least end, greatest start] is a forward zone; where the start is less, a
backward zone. There is a row exactly if no two forward zones overlap and no backward zone lies inside a forward one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NONE, Bool, Int8, Int64
from checkers.linearizable.deciders.register_functions import CAS, CAS_MISS, READ
from checkers.linearizable.values import NEVER
from harness.compiled import compiled

BEFORE_ALL = -1
"""When a register got its initial value."""

NOBODY = -1
"""No operation, no value, no chain."""


@dataclass(frozen=True, kw_only=True)
class Registers:
    """Operations on registers; values are numbered, first the initial one of each register."""

    count: int
    start: Int64
    end: Int64
    """NEVER if indefinite."""
    f: Int8
    value: Int64
    """The number of the value read or written; NOBODY where a read tells nothing."""
    expected: Int64
    """The number of the value that a cas expects, or did not find; NOBODY otherwise."""
    owner: Int64
    """The register of each value."""
    writer: Int64
    """The operation that wrote each value."""
    ambiguous: Int64
    """By register the first operation that writes what was written before, or is a failed cas that tells something."""
    happened: Bool
    """Which operations certainly happened: they are definite, or their value was seen by one that happened."""


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
    """Operations with values as they were told, NONE for null, in any order; registers are numbered from 0 to `count`.

    Indefinite reads tell nothing, and neither does a read of null where registers begin as something else: whoever
    recorded that left the answer out.
    """
    mute = (f == READ) & (end == NEVER)
    if initial != NONE:
        mute |= (f == READ) & (value == NONE)
    values, expects, owner = _numbers(register, f, value, expected, mute, initial, count)
    writer, ambiguous = _writers(start, f, values, owner, count)
    return Registers(
        count=count,
        start=start,
        end=end,
        f=f,
        value=values,
        expected=expects,
        owner=owner,
        writer=writer,
        ambiguous=ambiguous,
        happened=_happened(end, f, values, expects, writer),
    )


@compiled
def _numbers(
    register: Int64, f: Int8, value: Int64, expected: Int64, mute: Bool, initial: int, count: int
) -> tuple[Int64, Int64, Int64]:
    """The values' numbers, those of what is expected, and whose each value is. Cost: O(n), by hashing."""
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
        mixed = np.uint64(v) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(r) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        at = np.int64((mixed >> np.uint64(20)) & np.uint64(capacity - 1))
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


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """By value: the read that ended first, the one that began last, and the cas that replaced it; NOBODY if none."""

    first_read: Int64
    last_read: Int64
    replaced_by: Int64
    unwritten: Int64
    """By register the first operation that saw what nobody wrote."""
    replaced_twice: Int64
    """By register two cas that replaced the same value; shape (count, 2)."""


def clusters(registers: Registers) -> Clusters:
    first_read, last_read, replaced_by, unwritten, twice = _clusters(
        registers.start,
        registers.end,
        registers.f,
        registers.value,
        registers.expected,
        registers.owner,
        registers.writer,
        registers.happened,
        registers.count,
    )
    return Clusters(
        first_read=first_read,
        last_read=last_read,
        replaced_by=replaced_by,
        unwritten=unwritten,
        replaced_twice=twice,
    )


@compiled
def _clusters(
    start: Int64,
    end: Int64,
    f: Int8,
    value: Int64,
    expected: Int64,
    owner: Int64,
    writer: Int64,
    happened: Bool,
    count: int,
) -> tuple[Int64, Int64, Int64, Int64, Int64]:
    first_read = np.full(len(owner), -1, dtype=np.int64)
    last_read = np.full(len(owner), -1, dtype=np.int64)
    replaced_by = np.full(len(owner), -1, dtype=np.int64)
    unwritten = np.full(count, -1, dtype=np.int64)
    twice = np.full((count, 2), -1, dtype=np.int64)
    for i in range(len(f)):
        if not happened[i]:
            continue
        seen = value[i] if f[i] == READ else expected[i]
        if seen < 0:
            continue
        r = owner[seen]
        if writer[seen] < 0 and seen >= count and (unwritten[r] < 0 or start[i] < start[unwritten[r]]):
            unwritten[r] = i
        if f[i] == READ:
            if first_read[seen] < 0 or end[i] < end[first_read[seen]]:
                first_read[seen] = i
            if last_read[seen] < 0 or start[i] > start[last_read[seen]]:
                last_read[seen] = i
        elif f[i] == CAS:
            other = replaced_by[seen]
            if other < 0:
                replaced_by[seen] = i
                continue
            one, other = (i, other) if start[i] < start[other] else (other, i)
            replaced_by[seen] = one
            if twice[r, 1] < 0 or start[other] < start[twice[r, 1]]:
                twice[r, 0] = one
                twice[r, 1] = other
    return first_read, last_read, replaced_by, unwritten, twice


@dataclass(frozen=True, kw_only=True)
class Chains:
    """By value. A chain is named by the value that it begins with."""

    first: Int64
    """The value that the chain of each value begins with; NOBODY in circles."""
    depth: Int64
    """How many cas lie between."""
    ended: Int64
    """By name of a chain the operation that ended first; NOBODY for values that name no chain."""
    began: Int64
    """By name of a chain the operation that began last."""
    circular: Int64
    """By register the first operation to end in a circle of cas operations."""
    late: Int64
    """By register an operation, and another that ended before it began and must follow it; shape (count, 2)."""


def chains(registers: Registers, known: Clusters) -> Chains:
    first, depth, ended, began, circular, late = _chains(
        registers.start,
        registers.end,
        registers.f,
        registers.value,
        registers.owner,
        registers.writer,
        registers.happened,
        registers.count,
        known.first_read,
        known.last_read,
        known.replaced_by,
    )
    return Chains(first=first, depth=depth, ended=ended, began=began, circular=circular, late=late)


@compiled
def _chains(
    start: Int64,
    end: Int64,
    f: Int8,
    value: Int64,
    owner: Int64,
    writer: Int64,
    happened: Bool,
    count: int,
    first_read: Int64,
    last_read: Int64,
    replaced_by: Int64,
) -> tuple[Int64, Int64, Int64, Int64, Int64, Int64]:
    first = np.full(len(owner), -1, dtype=np.int64)
    depth = np.zeros(len(owner), dtype=np.int64)
    ended = np.full(len(owner), -1, dtype=np.int64)
    began = np.full(len(owner), -1, dtype=np.int64)
    circular = np.full(count, -1, dtype=np.int64)
    late = np.full((count, 2), -1, dtype=np.int64)
    for name in range(len(owner)):
        w = writer[name]
        if w >= 0 and happened[w] and f[w] == CAS:
            continue
        at, far, soonest, latest = name, 0, -1, -1
        while True:
            first[at] = name
            depth[at] = far
            # First the write of a value, then its reads, then the cas that replaces it.
            w = writer[at]
            for early, last in ((w, w), (first_read[at], last_read[at])):
                if early < 0 or not happened[early]:
                    continue
                if latest >= 0 and start[latest] > end[early]:
                    r = owner[name]
                    if late[r, 1] < 0 or end[early] < end[late[r, 1]]:
                        late[r, 0] = latest
                        late[r, 1] = early
                if soonest < 0 or end[early] < end[soonest]:
                    soonest = early
                if latest < 0 or start[last] > start[latest]:
                    latest = last
            swap = replaced_by[at]
            # Where values are written twice, chains would lead round and round.
            if swap < 0 or writer[value[swap]] != swap:
                break
            at = value[swap]
            far += 1
        ended[name] = soonest
        began[name] = latest
    for v in range(len(owner)):
        if first[v] >= 0:
            continue
        for i in (writer[v], first_read[v]):
            if i >= 0 and (circular[owner[v]] < 0 or end[i] < end[circular[owner[v]]]):
                circular[owner[v]] = i
    return first, depth, ended, began, circular, late


@dataclass(frozen=True, kw_only=True)
class Zones:
    """Of all chains that have operations, in ascending order of `low`."""

    chain: Int64
    owner: Int64
    low: Int64
    high: Int64
    forward: Bool
    """`low` is the least end and `high` the greatest start; the other way round if not."""

    def __len__(self) -> int:
        return len(self.chain)


def zones(registers: Registers, known: Chains) -> Zones:
    chain = np.flatnonzero(known.ended >= 0)
    least = np.where(chain < registers.count, BEFORE_ALL, registers.end[known.ended[chain]])
    greatest = registers.start[known.began[chain]]
    low = np.minimum(least, greatest)
    order = np.argsort(low, kind="stable")
    return Zones(
        chain=chain[order],
        owner=registers.owner[chain[order]],
        low=low[order],
        high=np.maximum(least, greatest)[order],
        forward=(least < greatest)[order],
    )


def crossed(found: Zones, count: int) -> Int64:
    """By register the first two zones whose chains must each come before the other; shape (count, 2)."""
    return _crossed(found.owner, found.low, found.high, found.forward, count)


@compiled
def _crossed(owner: Int64, low: Int64, high: Int64, forward: Bool, count: int) -> Int64:
    pairs = np.full((count, 2), -1, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    # Of the backward zones that began since the last forward one, the one that is over first.
    least = np.full(count, -1, dtype=np.int64)
    for zone in range(len(owner) + count):
        is_end = zone >= len(owner)
        r = zone - len(owner) if is_end else owner[zone]
        if pairs[r, 0] >= 0:
            continue
        if not is_end and not forward[zone]:
            if least[r] < 0 or high[zone] < high[least[r]]:
                least[r] = zone
            continue
        if last[r] >= 0:
            if least[r] >= 0 and high[least[r]] < high[last[r]]:
                pairs[r, 0] = last[r]
                pairs[r, 1] = least[r]
            elif not is_end and low[zone] < high[last[r]]:
                pairs[r, 0] = last[r]
                pairs[r, 1] = zone
        last[r] = zone
        least[r] = -1
    return pairs


@compiled
def seats(low: Int64, high: Int64, forward: Bool) -> Int64:
    """When the chains of one register may take effect, one behind the other, if no two zones are crossed.

    A forward zone does where it begins; a backward one, which may at any moment of it, where it begins or the forward
    zone around that is over.
    """
    result = np.empty(len(low), dtype=np.int64)
    over = np.int64(BEFORE_ALL)
    for zone in range(len(low)):
        if forward[zone]:
            result[zone] = low[zone]
            over = high[zone]
        else:
            result[zone] = max(low[zone], over)
    return result
