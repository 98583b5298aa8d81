"""Sets without reads of everything, decided element by element.

For one element there are few ways to tell what happened: it was added and later removed, or removed in vain before
that, or only added, or never added. It is best added as late, and removed as early, as the calls that found it allow;
then no call that did not find it may lie between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.deciders.set_calls import (
    ADD,
    CONTAINS,
    FALSE,
    FAR,
    NOBODY,
    REMOVE,
    TRUE,
    SetCalls,
    described,
)
from checkers.linearizable.deciders.spans import Contradiction, Ordered, Outcome

AT_FIRST = -2
"""When what is there at first was added; until the next moment."""


ADDED_AND_REMOVED, ADDED, REMOVED_AND_ADDED, NEVER_ADDED, IMPOSSIBLE = range(5)
"""What may have happened to an element."""


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


def _ways(told: SetCalls) -> _Ways:
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


def decided_by_element(told: SetCalls) -> Outcome:
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
    calls = ", ".join(described(told, one) for one in sorted(witnesses))
    return Contradiction(
        frozenset(witnesses), f"{told.shown(element)} {at_first}, and no order fits what was told: {calls}"
    )


def order_by_element(told: SetCalls) -> Int64:
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
