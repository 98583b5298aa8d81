"""Sets with reads of everything, from which nothing is removed.

What is read grows, so all reads are in a row: each comes behind the adds of what it shows and before the adds of what
it does not show. The same holds for calls about one element. So each operation has an earliest moment, behind its own
begin and the earliest moments of what comes before it, and that must be before its end. The element of an indefinite
add was added if it was found; otherwise it need not have been."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NO_INDEX, Bool, Int64
from checkers.linearizable.deciders.set_operations import ADD, CONTAINS, FALSE, FAR, READ, TRUE, SetCalls, described
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class _Growth:
    """The growth of the set from read to read."""

    level: Int64
    """By element: the read before which it was added, counting only reads that show more than those before them; the
    number of such reads if no read shows it."""
    first_read: Int64
    """By element: the first read that shows it; NO_INDEX if none does, or if it was there at first."""
    of_read: Int64
    """By operation, for reads: how many of these reads are before it and show less."""


def decided_by_reads(calls: SetCalls) -> Outcome:
    growth = _never_there(calls) or _growth(calls)
    wrong = _late(calls, growth) if isinstance(growth, _Growth) else growth
    if wrong is None:
        return Ordered()
    if np.any(calls.remove != NO_INDEX):
        return Open("there are removes of unknown outcome, and reads of everything")
    return wrong


def _never_there(calls: SetCalls) -> Contradiction | None:
    """The contradiction of an operation that found an element that was never there, or missed one that always was."""
    spans = calls.spans
    always = np.append(calls.at_first, False)
    never = np.append(~calls.at_first & (calls.add == NO_INDEX), False)
    finds = (spans.f == CONTAINS) & (spans.result == TRUE) & never[calls.element]
    misses = (spans.f == CONTAINS) & (spans.result == FALSE) & always[calls.element]
    wrong = np.flatnonzero(finds | misses | ((spans.f == ADD) & (spans.result == FALSE)))
    if len(wrong):
        one = int(wrong[0])
        how = "always" if misses[one] else "never" if finds[one] else "not yet"
        return Contradiction(frozenset({one}), f"{described(calls, one)}, but it was {how} there")
    bad = np.flatnonzero(never[calls.lists.elements])
    if len(bad) == 0:
        return None
    read = int(np.searchsorted(calls.lists.bounds, bad[0], side="right")) - 1
    element = int(calls.lists.elements[bad[0]])
    return Contradiction(
        frozenset({read}), f"{described(calls, read)} shows {calls.render(element)}, which was never added"
    )


def _growth(calls: SetCalls) -> _Growth | Contradiction:
    reads = np.flatnonzero(calls.spans.f == READ)
    sizes = np.diff(calls.lists.bounds)[reads]
    by_size = reads[np.argsort(sizes, kind="stable")]
    level, first_read, of_read, wrong = _levels(calls.lists.elements, calls.lists.bounds, by_size, calls.at_first)
    if wrong < 0:
        return _Growth(level=level, first_read=first_read, of_read=of_read)
    shown_there = calls.lists.of(int(wrong))
    seen = calls.at_first | (first_read != NO_INDEX)
    seen[shown_there] = False
    lacks = int(np.flatnonzero(seen)[0])
    if calls.at_first[lacks]:
        return Contradiction(
            frozenset({int(wrong)}),
            f"{described(calls, int(wrong))} lacks {calls.render(lacks)}, which was there at first",
        )
    other = int(first_read[lacks])
    more = int(np.setdiff1d(shown_there, calls.lists.of(other))[0])
    return Contradiction(
        frozenset({int(wrong), other, int(calls.add[lacks]), int(calls.add[more])}),
        f"{described(calls, other)} shows {calls.render(lacks)} without {calls.render(more)}, and "
        f"{described(calls, int(wrong))} shows {calls.render(more)} without {calls.render(lacks)}",
    )


@compiled
def _levels(elements: Int64, bounds: Int64, by_size: Int64, at_first: Bool) -> tuple[Int64, Int64, Int64, int]:
    """(the level of each element, its first read, the level of each operation, a read that lacks an element that one
    not longer shows, or -1)."""
    level = np.where(at_first, 0, -1)
    first_read = np.full(len(at_first), NO_INDEX, dtype=np.int64)
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
            return level, first_read, of_read, read
        total = size
        for element in elements[bounds[read] : bounds[read + 1]]:
            if level[element] < 0:
                level[element] = now
                first_read[element] = read
    level[level < 0] = now + 1
    return level, first_read, of_read, -1


@dataclass(frozen=True, kw_only=True)
class _Row:
    """All operations that happened, in a row."""

    operations: Int64
    earliest: Int64
    """The time right behind which each operation may take effect."""
    rank: Int64
    """Its rank: there it takes effect behind those of a lower rank."""


def _row(calls: SetCalls, growth: _Growth) -> _Row:
    spans, count = calls.spans, len(calls.values)
    contains = np.flatnonzero(spans.f == CONTAINS)
    found, missed = (contains[spans.result[contains] == answer] for answer in (TRUE, FALSE))
    last_missed = np.full(count, -1, dtype=np.int64)
    np.maximum.at(last_missed, calls.element[missed], spans.start[missed])
    is_found = np.append(growth.first_read != NO_INDEX, False)
    is_found[calls.element[found]] = True
    adds = np.flatnonzero((spans.f == ADD) & (spans.definite | is_found[calls.element]))
    reads = np.flatnonzero(spans.f == READ)

    row = np.concatenate((adds, reads))
    rank = np.concatenate((2 * growth.level[calls.element[adds]], 2 * growth.of_read[reads] + 1))
    earliest = np.concatenate((np.maximum(spans.start[adds], last_missed[calls.element[adds]]), spans.start[reads]))
    order = np.argsort(rank, kind="stable")
    row, rank, earliest = row[order], rank[order], earliest[order]
    before = np.append(-1, np.maximum.accumulate(earliest))[np.searchsorted(rank, rank)]
    earliest = np.maximum(earliest, before)

    of_add = np.full(count, -1, dtype=np.int64)
    is_add = spans.f[row] == ADD
    of_add[calls.element[row[is_add]]] = earliest[is_add]
    return _Row(
        operations=np.concatenate((missed, row, found)),
        earliest=np.concatenate(
            (spans.start[missed], earliest, np.maximum(spans.start[found], of_add[calls.element[found]]))
        ),
        rank=np.concatenate((np.full(len(missed), -1), rank, np.full(len(found), FAR))),
    )


def _late(calls: SetCalls, growth: _Growth) -> Contradiction | None:
    row = _row(calls, growth)
    wrong = np.flatnonzero(row.earliest > calls.end[row.operations])
    if len(wrong) == 0:
        return None
    first = wrong[np.argmin(calls.end[row.operations[wrong]])]
    behind = int(row.operations[first])
    before = int(np.searchsorted(calls.spans.start, row.earliest[first]))
    witnesses = {before, behind}
    levels = []
    for one in (before, behind):
        if calls.spans.f[one] == READ:
            levels.append(growth.of_read[one])
            continue
        element = calls.element[one]
        levels.append(growth.level[element])
        witnesses |= {int(calls.add[element])} - {NO_INDEX}
    proof = ""
    if READ not in calls.spans.f[[before, behind]] and levels[0] < levels[1]:
        between = int(np.flatnonzero(growth.of_read == levels[0])[0])
        witnesses.add(between)
        proof = f", as {described(calls, between)} shows"
    if np.all(calls.spans.f[[before, behind]] == READ):
        more = np.setdiff1d(calls.lists.of(behind), calls.lists.of(before))
        witnesses.add(int(calls.add[more[0]]))
        proof = f", for it lacks {calls.render(int(more[0]))}"
    return Contradiction(
        frozenset(witnesses),
        f"{described(calls, behind)} had ended when {described(calls, before)} began, which comes before it{proof}",
    )


def order_of_reads(calls: SetCalls) -> Int64:
    growth = _growth(calls)
    assert isinstance(growth, _Growth)
    row = _row(calls, growth)
    return row.operations[np.lexsort((row.rank, row.earliest))]
