"""Sets to which each element is added at most once, and from which it is removed at most once: decided in O(n log n)
and the size of all reads.

Without reads of everything, elements have nothing to do with each other. For one element there are few ways to tell
what happened: it was added and later removed, or removed in vain before that, or only added, or never added. It is best
added as late, and removed as early, as what is told to have found it allows; then whatever is told not to have found it
must not lie between.

With reads of everything, as long as nothing is removed: what is read grows, so all reads stand in a row, each behind
the adds of what it tells and before the adds of what it does not tell; and so do calls about one element. So everything
has an earliest moment, behind its own begin and the earliest moments of what comes before it, which must be before its
end. What is added by a call of unknown outcome was added if it was found, and else need not have been.

Reads of everything together with removes leave this case, as do elements that are added or removed again.

Functions: add, remove, contains, with 1 as result if it was told that something changed, or is there, and 0 if not;
read, whose lists tell all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NONE, Bool, Int64, compact
from checkers.linearizable.objects.spans import Contradiction, Lists, Open, Ordered, Outcome, Spans
from harness.compiled import compiled

ADD, REMOVE, CONTAINS, READ = range(4)
FALSE, TRUE = range(2)
NOBODY = -1

FAR = 1 << 60
"""Stands for NEVER where times are reckoned with."""
AT_FIRST = -2
"""When what is there at first was added; until the next moment."""

ADDED_AND_REMOVED, ADDED, REMOVED_AND_ADDED, NEVER_ADDED, IMPOSSIBLE = range(5)
"""What may have happened to an element."""


@dataclass(frozen=True)
class SetOfElements:
    """Decides sets."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        told = _told(spans, initial)
        if isinstance(told, Open):
            return told
        return _read_as_one(told) if told.reads else _element_by_element(told)

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        told = _told(spans, initial)
        assert isinstance(told, _Told)
        return _order_of_reads(told) if told.reads else _order_by_element(told)


SET = SetOfElements()


@dataclass(frozen=True, kw_only=True)
class _Told:
    """Operations by the elements that they are about, which are numbered."""

    spans: Spans
    values: Int64
    """By number of the element; NONE for numbers that none has."""
    element: Int64
    """By operation; one more than there are for reads of everything."""
    end: Int64
    """With FAR instead of NEVER."""
    add: Int64
    """By element, the operation that adds it; NOBODY if there is none."""
    remove: Int64
    at_first: Bool
    """By element: it is there at first."""
    lists: Lists
    """Numbers of elements, each of them once in a list."""

    @property
    def reads(self) -> bool:
        return bool(np.any(self.spans.f == READ))

    def shown(self, element: int) -> str:
        return self.spans.shown(self.values[element])

    def start_of(self, operations: Int64, otherwise: int) -> Int64:
        return np.where(operations == NOBODY, otherwise, np.append(self.spans.start, 0)[operations])

    def end_of(self, operations: Int64, otherwise: int) -> Int64:
        return np.where(operations == NOBODY, otherwise, np.append(self.end, 0)[operations])

    def result_of(self, operations: Int64) -> Int64:
        return np.where(operations == NOBODY, NONE, np.append(self.spans.result, 0)[operations])


def _told(spans: Spans, initial: tuple[int, ...]) -> _Told | Open:
    lists = spans.lists or Lists(elements=np.empty(0, np.int64), bounds=np.zeros(len(spans) + 1, np.int64))
    about = np.flatnonzero(spans.f != READ)
    at_first = np.array(initial, dtype=np.int64)
    occurring = np.concatenate((at_first, spans.argument[about], lists.elements))
    number = compact(occurring)
    values = np.full(int(number.max(initial=-1)) + 1, NONE, dtype=np.int64)
    values[number] = occurring
    here, of_calls, of_lists = np.split(number, np.cumsum([len(at_first), len(about)]))
    element = np.full(len(spans), len(values), dtype=np.int64)
    element[about] = of_calls
    there = np.zeros(len(values), dtype=np.bool_)
    there[here] = True
    calls = []
    for f in (ADD, REMOVE):
        call = np.full(len(values), NOBODY, dtype=np.int64)
        own = np.flatnonzero(spans.f == f)
        call[element[own]] = own
        again = np.flatnonzero(call[element[own]] != own)
        if len(again):
            what = "added" if f == ADD else "removed"
            return Open(f"{spans.shown(values[element[own[again[0]]]])} is {what} more than once")
        calls.append(call)
    add, remove = calls
    if np.any(there & (add != NOBODY)):
        return Open("what is there at first is added again")
    if np.any(spans.f == READ) and np.any((remove != NOBODY) & np.append(spans.definite, False)[remove]):
        return Open("there are removes, and reads of everything")
    return _Told(
        spans=spans,
        values=values,
        element=element,
        end=np.where(spans.definite, spans.end, FAR),
        add=add,
        remove=remove,
        at_first=there,
        lists=_without_repetition(of_lists, lists.bounds, len(values)),
    )


def _without_repetition(elements: Int64, bounds: Int64, values: int) -> Lists:
    kept = _first_in_list(elements, bounds, values)
    return Lists(elements=elements[kept], bounds=np.append(0, np.cumsum(kept))[bounds])


@compiled
def _first_in_list(elements: Int64, bounds: Int64, values: int) -> Bool:
    seen = np.full(values, -1, dtype=np.int64)
    first = np.zeros(len(elements), dtype=np.bool_)
    for one in range(len(bounds) - 1):
        for at in range(bounds[one], bounds[one + 1]):
            first[at] = seen[elements[at]] != one
            seen[elements[at]] = one
    return first


# Element by element.


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """By element: what happened, and when it was there at least."""

    way: Int64
    since: Int64
    """It is added before this time, as late as possible."""
    until: Int64
    """It is removed behind this time, as early as possible."""
    found: Int64
    """The operations that tell that it was there: the one that ended first, NOBODY if there is none."""
    found_last: Int64
    """The one that began last."""


def _ways(told: _Told) -> _Ways:
    spans, count = told.spans, len(told.values)
    contains = np.flatnonzero(spans.f == CONTAINS)
    found, missed = (contains[spans.result[contains] == answer] for answer in (TRUE, FALSE))
    found_first = _least(told.element[found], spans.end[found], found, count)
    found_last = _least(told.element[found], -spans.start[found], found, count)

    has_add, has_remove = told.at_first | (told.add != NOBODY), told.remove != NOBODY
    add_start = np.where(told.at_first, AT_FIRST, told.start_of(told.add, FAR))
    add_end = np.where(told.at_first, AT_FIRST + 1, told.end_of(told.add, FAR))
    remove_start, remove_end = told.start_of(told.remove, FAR), told.end_of(told.remove, FAR)
    add_told, remove_told = told.result_of(told.add), told.result_of(told.remove)
    since = np.minimum(add_end, told.end_of(found_first, FAR))
    until = np.maximum(remove_start, told.start_of(found_last, -1))

    lies_between = np.zeros(count, dtype=np.bool_)
    between = (spans.start[missed] > since[told.element[missed]]) & (spans.end[missed] < until[told.element[missed]])
    lies_between[told.element[missed[between]]] = True
    lies_behind = np.zeros(count, dtype=np.bool_)
    lies_behind[told.element[missed[spans.start[missed] > since[told.element[missed]]]]] = True

    can_be_added = has_add & (add_told != FALSE) & (add_start < since)
    stays = can_be_added & ~lies_behind
    way = np.full(count, IMPOSSIBLE)
    for one, possible in (
        (
            ADDED_AND_REMOVED,
            can_be_added & has_remove & (remove_told != FALSE) & ~lies_between
            & (until < remove_end) & (add_start < remove_end),
        ),
        (REMOVED_AND_ADDED, stays & has_remove & (remove_told != TRUE) & (remove_start < since)),
        (ADDED, stays & (~has_remove | (remove_end == FAR))),
        (
            NEVER_ADDED,
            (~has_add | ((add_end == FAR) & ~told.at_first)) & (remove_told != TRUE) & (found_first == NOBODY),
        ),
    ):  # fmt: skip
        way[possible] = one
    return _Ways(way=way, since=since, until=until, found=found_first, found_last=found_last)


def _least(element: Int64, key: Int64, operations: Int64, count: int) -> Int64:
    """By element, the operation with the least key; NOBODY if there is none."""
    least = np.full(count, NOBODY, dtype=np.int64)
    order = np.argsort(-key, kind="stable")
    least[element[order]] = operations[order]
    return least


def _element_by_element(told: _Told) -> Outcome:
    ways = _ways(told)
    wrong = np.flatnonzero(ways.way == IMPOSSIBLE)
    if len(wrong) == 0:
        return Ordered()
    element = int(wrong[0])
    spans, since, until = told.spans, int(ways.since[element]), int(ways.until[element])
    missed = np.flatnonzero((told.element == element) & (spans.f == CONTAINS) & (spans.result == FALSE))
    missed = missed[spans.start[missed] > since]
    between = missed[spans.end[missed] < until][:1]
    called = (told.add[element], told.remove[element], ways.found[element], ways.found_last[element])
    witnesses = {*(int(one) for one in called), *missed[:1].tolist(), *between.tolist()} - {NOBODY}
    at_first = "was there at first" if told.at_first[element] else "was not there at first"
    calls = ", ".join(_described(told, one) for one in sorted(witnesses))
    return Contradiction(
        frozenset(witnesses), f"{told.shown(element)} {at_first}, and no order fits what was told: {calls}"
    )


def _described(told: _Told, one: int) -> str:
    spans = told.spans
    f = ("add", "remove", "contains", "read")[spans.f[one]]
    if spans.f[one] == READ:
        return f"the read of {len(told.lists.of(one))} elements ({spans.when(one)})"
    answer = "" if spans.result[one] == NONE else f" that told {'true' if spans.result[one] == TRUE else 'false'}"
    return f"the {f} {spans.shown(spans.argument[one])}{answer} ({spans.when(one)})"


def _order_by_element(told: _Told) -> Int64:
    """Moments between times: at 4 t + 1, 4 t + 2 or 4 t + 3, so that four of one element fit behind each other."""
    spans, ways = told.spans, _ways(told)
    elements = np.arange(len(told.values))
    way, since, until = ways.way, ways.since, ways.until
    add_start = np.where(told.at_first, AT_FIRST, told.start_of(told.add, FAR))
    touching = (way == ADDED_AND_REMOVED) & (since > until)
    at_once = 4 * np.maximum(add_start, until)
    add_at = np.where(touching, at_once + 1, 4 * np.minimum(since, FAR) - 1)
    add_at[way == NEVER_ADDED] = 4 * FAR
    remove_at = np.full(len(elements), 4 * FAR)
    removed = way == ADDED_AND_REMOVED
    remove_at[removed] = np.where(touching, at_once + 3, 4 * until + 1)[removed]

    operations = np.arange(len(spans))
    element, begun = told.element, 4 * spans.start + 1
    must = 4 * told.end - 1
    added, gone = add_at[element], remove_at[element]
    is_absent = (spans.f == CONTAINS) & (spans.result == FALSE)
    in_vain = (spans.f == REMOVE) & (way[element] != ADDED_AND_REMOVED)
    before = (is_absent | in_vain) & (begun <= added)
    moment = np.where(before, np.minimum(must, added), np.maximum(begun, gone))
    phase = np.where(before, 0, 4)
    for chosen, at, then in (
        (spans.f == ADD, added, 1),
        ((spans.f == CONTAINS) & (spans.result == TRUE), np.maximum(begun, added), 2),
        ((spans.f == REMOVE) & ~in_vain, gone, 3),
    ):
        moment[chosen], phase[chosen] = at[chosen], then
    happened = spans.definite | np.where(spans.f == ADD, way[element] != NEVER_ADDED, ~in_vain)
    order = np.lexsort((phase, moment))
    return np.asarray(operations[order][happened[order]])


# With reads of everything, and without removes.


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


def _read_as_one(told: _Told) -> Outcome:
    growth = _untold(told) or _growth(told)
    wrong = _out_of_order(told, growth) if isinstance(growth, _Growth) else growth
    if wrong is None:
        return Ordered()
    if np.any(told.remove != NOBODY):
        return Open("there are removes of unknown outcome, and reads of everything")
    return wrong


def _untold(told: _Told) -> Contradiction | None:
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
        return Contradiction(frozenset({one}), f"{_described(told, one)}, but it was {how} there")
    bad = np.flatnonzero(never[told.lists.elements])
    if len(bad) == 0:
        return None
    read = int(np.searchsorted(told.lists.bounds, bad[0], side="right")) - 1
    element = int(told.lists.elements[bad[0]])
    return Contradiction(frozenset({read}), f"{_described(told, read)} tells {told.shown(element)}, which nobody added")


def _growth(told: _Told) -> _Growth | Contradiction:
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
            f"{_described(told, int(wrong))} lacks {told.shown(lacks)}, which was there at first",
        )
    other = int(teller[lacks])
    more = int(np.setdiff1d(told_there, told.lists.of(other))[0])
    return Contradiction(
        frozenset({int(wrong), other, int(told.add[lacks]), int(told.add[more])}),
        f"{_described(told, other)} tells {told.shown(lacks)} without {told.shown(more)}, and "
        f"{_described(told, int(wrong))} tells {told.shown(more)} without {told.shown(lacks)}",
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


def _row(told: _Told, growth: _Growth) -> _Row:
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


def _out_of_order(told: _Told, growth: _Growth) -> Contradiction | None:
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
        proof = f", as {_described(told, between)} tells"
    if np.all(told.spans.f[[before, behind]] == READ):
        more = np.setdiff1d(told.lists.of(behind), told.lists.of(before))
        witnesses.add(int(told.add[more[0]]))
        proof = f", for it lacks {told.shown(int(more[0]))}"
    return Contradiction(
        frozenset(witnesses),
        f"{_described(told, behind)} had ended when {_described(told, before)} began, which comes before it{proof}",
    )


def _order_of_reads(told: _Told) -> Int64:
    growth = _growth(told)
    assert isinstance(growth, _Growth)
    row = _row(told, growth)
    return row.operations[np.lexsort((row.rank, row.earliest))]
