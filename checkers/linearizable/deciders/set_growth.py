"""Sets with reads of everything, from which nothing is removed.

What is read grows, so all reads stand in a row, each behind the adds of what it shows and before the adds of what it
does not show; and so do calls about one element. So everything has an earliest moment, behind its own begin and the
earliest moments of what comes before it, which must be before its end. The element of an indefinite add was added if it
was found, and else need not have been."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Bool, Int64
from checkers.linearizable.deciders.set_calls import ADD, CONTAINS, FALSE, FAR, NOBODY, READ, TRUE, SetCalls, described
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class _Growth:
    """How the set grows from read to read."""

    level: Int64
    """By element: before which read it was added, counting only reads that tell more than those before; as many as
    there are of these if no read tells it."""
    teller: Int64
    """By element, the first read that tells it; NOBODY if none does, or it was there at first."""
    of_read: Int64
    """By operation, for reads: how many there are before it that tell less."""


def decided_by_reads(told: SetCalls) -> Outcome:
    growth = _never_there(told) or _growth(told)
    wrong = _late(told, growth) if isinstance(growth, _Growth) else growth
    if wrong is None:
        return Ordered()
    if np.any(told.remove != NOBODY):
        return Open("there are removes of unknown outcome, and reads of everything")
    return wrong


def _never_there(told: SetCalls) -> Contradiction | None:
    """Who found what was never there, or missed what was always there."""
    spans = told.spans
    always = np.append(told.at_first, False)
    never = np.append(~told.at_first & (told.add == NOBODY), False)
    finds = (spans.f == CONTAINS) & (spans.result == TRUE) & never[told.element]
    misses = (spans.f == CONTAINS) & (spans.result == FALSE) & always[told.element]
    wrong = np.flatnonzero(finds | misses | ((spans.f == ADD) & (spans.result == FALSE)))
    if len(wrong):
        one = int(wrong[0])
        how = "always" if misses[one] else "never" if finds[one] else "not yet"
        return Contradiction(frozenset({one}), f"{described(told, one)}, but it was {how} there")
    bad = np.flatnonzero(never[told.lists.elements])
    if len(bad) == 0:
        return None
    read = int(np.searchsorted(told.lists.bounds, bad[0], side="right")) - 1
    element = int(told.lists.elements[bad[0]])
    return Contradiction(frozenset({read}), f"{described(told, read)} tells {told.shown(element)}, which nobody added")


def _growth(told: SetCalls) -> _Growth | Contradiction:
    reads = np.flatnonzero(told.spans.f == READ)
    sizes = np.diff(told.lists.bounds)[reads]
    by_size = reads[np.argsort(sizes, kind="stable")]
    level, teller, of_read, wrong = _levels(told.lists.elements, told.lists.bounds, by_size, told.at_first)
    if wrong < 0:
        return _Growth(level=level, teller=teller, of_read=of_read)
    told_there = told.lists.of(int(wrong))
    seen = told.at_first | (teller != NOBODY)
    seen[told_there] = False
    lacks = int(np.flatnonzero(seen)[0])
    if told.at_first[lacks]:
        return Contradiction(
            frozenset({int(wrong)}),
            f"{described(told, int(wrong))} lacks {told.shown(lacks)}, which was there at first",
        )
    other = int(teller[lacks])
    more = int(np.setdiff1d(told_there, told.lists.of(other))[0])
    return Contradiction(
        frozenset({int(wrong), other, int(told.add[lacks]), int(told.add[more])}),
        f"{described(told, other)} tells {told.shown(lacks)} without {told.shown(more)}, and "
        f"{described(told, int(wrong))} tells {told.shown(more)} without {told.shown(lacks)}",
    )


@compiled
def _levels(elements: Int64, bounds: Int64, by_size: Int64, at_first: Bool) -> tuple[Int64, Int64, Int64, int]:
    """Of elements the level and the first teller, of operations the level, and a read that lacks what a shorter one, or
    one as long, tells, or -1."""
    level = np.where(at_first, 0, -1)
    teller = np.full(len(at_first), NOBODY, dtype=np.int64)
    of_read = np.full(len(bounds) - 1, -1, dtype=np.int64)
    total = at_first.sum()
    size = -1
    now = -1
    for read in by_size:
        if bounds[read + 1] - bounds[read] != size:
            size = bounds[read + 1] - bounds[read]
            now += 1
        of_read[read] = now
        fresh = 0
        for element in elements[bounds[read] : bounds[read + 1]]:
            fresh += level[element] < 0
        if total + fresh != size:
            return level, teller, of_read, read
        total = size
        for element in elements[bounds[read] : bounds[read + 1]]:
            if level[element] < 0:
                level[element] = now
                teller[element] = read
    level[level < 0] = now + 1
    return level, teller, of_read, -1


@dataclass(frozen=True, kw_only=True)
class _Row:
    """All that happened."""

    operations: Int64
    earliest: Int64
    """Each may take effect right behind this time."""
    rank: Int64
    """And then behind those of a lower rank."""


def _row(told: SetCalls, growth: _Growth) -> _Row:
    spans, count = told.spans, len(told.values)
    contains = np.flatnonzero(spans.f == CONTAINS)
    found, missed = (contains[spans.result[contains] == answer] for answer in (TRUE, FALSE))
    last_missed = np.full(count, -1, dtype=np.int64)
    np.maximum.at(last_missed, told.element[missed], spans.start[missed])
    is_found = np.append(growth.teller != NOBODY, False)
    is_found[told.element[found]] = True
    adds = np.flatnonzero((spans.f == ADD) & (spans.definite | is_found[told.element]))
    reads = np.flatnonzero(spans.f == READ)

    row = np.concatenate((adds, reads))
    rank = np.concatenate((2 * growth.level[told.element[adds]], 2 * growth.of_read[reads] + 1))
    earliest = np.concatenate((np.maximum(spans.start[adds], last_missed[told.element[adds]]), spans.start[reads]))
    order = np.argsort(rank, kind="stable")
    row, rank, earliest = row[order], rank[order], earliest[order]
    before = np.append(-1, np.maximum.accumulate(earliest))[np.searchsorted(rank, rank)]
    earliest = np.maximum(earliest, before)

    of_add = np.full(count, -1, dtype=np.int64)
    is_add = spans.f[row] == ADD
    of_add[told.element[row[is_add]]] = earliest[is_add]
    return _Row(
        operations=np.concatenate((missed, row, found)),
        earliest=np.concatenate(
            (spans.start[missed], earliest, np.maximum(spans.start[found], of_add[told.element[found]]))
        ),
        rank=np.concatenate((np.full(len(missed), -1), rank, np.full(len(found), FAR))),
    )


def _late(told: SetCalls, growth: _Growth) -> Contradiction | None:
    row = _row(told, growth)
    wrong = np.flatnonzero(row.earliest > told.end[row.operations])
    if len(wrong) == 0:
        return None
    first = wrong[np.argmin(told.end[row.operations[wrong]])]
    behind = int(row.operations[first])
    before = int(np.searchsorted(told.spans.start, row.earliest[first]))
    witnesses = {before, behind}
    levels = []
    for one in (before, behind):
        if told.spans.f[one] == READ:
            levels.append(growth.of_read[one])
            continue
        element = told.element[one]
        levels.append(growth.level[element])
        witnesses |= {int(told.add[element])} - {NOBODY}
    proof = ""
    if READ not in told.spans.f[[before, behind]] and levels[0] < levels[1]:
        between = int(np.flatnonzero(growth.of_read == levels[0])[0])
        witnesses.add(between)
        proof = f", as {described(told, between)} tells"
    if np.all(told.spans.f[[before, behind]] == READ):
        more = np.setdiff1d(told.lists.of(behind), told.lists.of(before))
        witnesses.add(int(told.add[more[0]]))
        proof = f", for it lacks {told.shown(int(more[0]))}"
    return Contradiction(
        frozenset(witnesses),
        f"{described(told, behind)} had ended when {described(told, before)} began, which comes before it{proof}",
    )


def order_of_reads(told: SetCalls) -> Int64:
    growth = _growth(told)
    assert isinstance(growth, _Growth)
    row = _row(told, growth)
    return row.operations[np.lexsort((row.rank, row.earliest))]
