"""Sets without reads of everything, decided element by element.

For one element few things can have happened: it was added and later removed, or only added, or added after a remove
that did not find it, or never added. It is best added as late, and removed as early, as the calls that found it allow.
Then no call that did not find it may lie in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int64
from checkers.linearizable.deciders.set_operations import ADD, CONTAINS, FALSE, FAR, REMOVE, TRUE, SetCalls, described
from checkers.linearizable.deciders.spans import Contradiction, Ordered, Outcome

AT_FIRST = -2
"""The time at which elements were added that are there at first. It lasts until the next moment."""


ADDED_AND_REMOVED, ADDED, REMOVED_AND_ADDED, NEVER_ADDED, IMPOSSIBLE = range(5)
"""What may have happened to an element."""


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """By element: what happened, and the least time for which it was there."""

    way: Int64
    since: Int64
    """The time before which it is added, as late as possible."""
    until: Int64
    """The time behind which it is removed, as early as possible."""
    found: Int64
    """The one of the operations that found it that ended first, or NO_INDEX."""
    found_last: Int64
    """The one of the operations that found it that began last."""


def _ways(calls: SetCalls) -> _Ways:
    spans, count = calls.spans, len(calls.values)
    contains = np.flatnonzero(spans.f == CONTAINS)
    found, missed = (contains[spans.result[contains] == answer] for answer in (TRUE, FALSE))
    found_first = _least(calls.element[found], spans.end[found], found, count)
    found_last = _least(calls.element[found], -spans.start[found], found, count)

    has_add, has_remove = calls.at_first | (calls.add != NO_INDEX), calls.remove != NO_INDEX
    add_start = np.where(calls.at_first, AT_FIRST, calls.start_of(calls.add, FAR))
    add_end = np.where(calls.at_first, AT_FIRST + 1, calls.end_of(calls.add, FAR))
    remove_start, remove_end = calls.start_of(calls.remove, FAR), calls.end_of(calls.remove, FAR)
    add_result, remove_result = calls.result_of(calls.add), calls.result_of(calls.remove)
    since = np.minimum(add_end, calls.end_of(found_first, FAR))
    until = np.maximum(remove_start, calls.start_of(found_last, -1))

    lies_between = np.zeros(count, dtype=np.bool_)
    between = (spans.start[missed] > since[calls.element[missed]]) & (spans.end[missed] < until[calls.element[missed]])
    lies_between[calls.element[missed[between]]] = True
    lies_behind = np.zeros(count, dtype=np.bool_)
    lies_behind[calls.element[missed[spans.start[missed] > since[calls.element[missed]]]]] = True

    can_be_added = has_add & (add_result != FALSE) & (add_start < since)
    stays = can_be_added & ~lies_behind
    way = np.full(count, IMPOSSIBLE)
    for one, possible in (
        (
            ADDED_AND_REMOVED,
            can_be_added & has_remove & (remove_result != FALSE) & ~lies_between
            & (until < remove_end) & (add_start < remove_end),
        ),
        (REMOVED_AND_ADDED, stays & has_remove & (remove_result != TRUE) & (remove_start < since)),
        (ADDED, stays & (~has_remove | (remove_end == FAR))),
        (
            NEVER_ADDED,
            (~has_add | ((add_end == FAR) & ~calls.at_first)) & (remove_result != TRUE) & (found_first == NO_INDEX),
        ),
    ):  # fmt: skip
        way[possible] = one
    return _Ways(way=way, since=since, until=until, found=found_first, found_last=found_last)


def _least(element: Int64, key: Int64, operations: Int64, count: int) -> Int64:
    """By element: the operation with the least key, or NO_INDEX."""
    least = np.full(count, NO_INDEX, dtype=np.int64)
    order = np.argsort(-key, kind="stable")
    least[element[order]] = operations[order]
    return least


def decided_by_element(calls: SetCalls) -> Outcome:
    ways = _ways(calls)
    wrong = np.flatnonzero(ways.way == IMPOSSIBLE)
    if len(wrong) == 0:
        return Ordered()
    element = int(wrong[0])
    spans, since, until = calls.spans, int(ways.since[element]), int(ways.until[element])
    missed = np.flatnonzero((calls.element == element) & (spans.f == CONTAINS) & (spans.result == FALSE))
    missed = missed[spans.start[missed] > since]
    between = missed[spans.end[missed] < until][:1]
    called = (calls.add[element], calls.remove[element], ways.found[element], ways.found_last[element])
    witnesses = {*(int(one) for one in called), *missed[:1].tolist(), *between.tolist()} - {NO_INDEX}
    at_first = "was there at first" if calls.at_first[element] else "was not there at first"
    listed = ", ".join(described(calls, one) for one in sorted(witnesses))
    return Contradiction(
        frozenset(witnesses), f"{calls.render(element)} {at_first}, and no order fits these calls: {listed}"
    )


def order_by_element(calls: SetCalls) -> Int64:
    """An order of all operations. Those between times t and t + 1 are at 4 t + 1, 4 t + 2 or 4 t + 3, so that those of
    one element can follow each other."""
    spans, ways = calls.spans, _ways(calls)
    elements = np.arange(len(calls.values))
    way, since, until = ways.way, ways.since, ways.until
    add_start = np.where(calls.at_first, AT_FIRST, calls.start_of(calls.add, FAR))
    touching = (way == ADDED_AND_REMOVED) & (since > until)
    at_once = 4 * np.maximum(add_start, until)
    add_at = np.where(touching, at_once + 1, 4 * np.minimum(since, FAR) - 1)
    add_at[way == NEVER_ADDED] = 4 * FAR
    remove_at = np.full(len(elements), 4 * FAR)
    removed = way == ADDED_AND_REMOVED
    remove_at[removed] = np.where(touching, at_once + 3, 4 * until + 1)[removed]

    operations = np.arange(len(spans))
    element, begun = calls.element, 4 * spans.start + 1
    must = 4 * calls.end - 1
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
