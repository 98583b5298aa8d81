"""Stacks to which no element is pushed twice: decided in O(n log n).

An element whose push and pop overlap can be popped as soon as it is pushed, and then has no influence. Every other
element is on the stack at least from the end of its push to the begin of its pop. The times for which elements are on
the stack must be nested or disjoint, which `nested_intervals` decides. A pop that finds nothing needs a moment at which
no element must be there; at all such moments the stack can be empty. Pops of unknown outcome are described in
`indefinite_dequeues`.

Source: Lee and Mathur, arXiv 2410.04581; Abdulla and others, arXiv 2509.17795.
"""

from __future__ import annotations

import numpy as np

from checkers.api.evidence import any_ok
from checkers.kernels.columns import NO_INDEX, Int64
from checkers.linearizable.deciders.indefinite_dequeues import (
    Clash,
    Collection,
    Due,
    never_empty,
    never_empty_because,
)
from checkers.linearizable.deciders.lifetimes import SHOWN, Lifetimes, Words, free_moments, in_a_row, named
from checkers.linearizable.deciders.nested_intervals import UNPLACED, Nesting, nested
from checkers.linearizable.deciders.spans import Spans
from checkers.linearizable.model import ANYTHING, Call, Decided, Model, State, Value, always, elements, repeating
from checkers.linearizable.objects.elements import Taken, buried, element_needed, element_put
from checkers.linearizable.values import NEVER
from harness.compiled import compiled

REDUCED = 200
"""The most elements of a row that is made as short as possible."""


class _Stack:
    words = Words(put="push", take="pop")

    def clash(self, lifetimes: Lifetimes) -> Clash | None:
        return never_empty(lifetimes) or self._no_bottom(lifetimes)

    def _no_bottom(self, lifetimes: Lifetimes) -> Clash | None:
        zoned, nesting = _nesting(lifetimes)
        begin, end = nesting.stuck_left, nesting.stuck_right
        if begin < 0:
            return None
        inside = (lifetimes.put_end[zoned] >= begin) & (lifetimes.take_start[zoned] <= end)
        row = in_a_row(lifetimes, begin, end, zoned[inside & (nesting.turn == UNPLACED)])
        row = _shortest(lifetimes, row)
        return Clash(row, int(lifetimes.put_end[row].min()), int(lifetimes.take_start[row].max()))

    def because(self, spans: Spans, lifetimes: Lifetimes, clash: Clash) -> str:
        if clash.empty_take != NO_INDEX:
            return never_empty_because(spans, lifetimes, clash, self.words)
        row = clash.elements
        first = row[np.argmin(lifetimes.put_end[row])]
        last = row[np.argmax(lifetimes.take_start[row])]
        reasons = [_not_at_bottom(spans, lifetimes, clash, v, first, last) for v in row[:SHOWN].tolist()]
        return (
            f"{named(spans, lifetimes, row)}: one of them was always on the stack, and none of them can have been "
            f"below the others: {'; '.join(reasons)}{'; …' if len(row) > SHOWN else ''}"
        )

    def due(self, seen: Lifetimes, left: Lifetimes) -> Due:
        zoned, nesting = _nesting(seen)
        order = np.lexsort((nesting.turn, nesting.left))
        by_end = np.argsort(left.put_end, kind="stable")
        inner, outer = _enclosing(
            nesting.left[order],
            nesting.right[order],
            seen.take_end[zoned[order]],
            left.put_start[by_end],
            left.put_end[by_end],
        )
        soon, late, by = (np.full(len(by_end), NEVER) for _ in range(3))
        found = inner >= 0
        soon[by_end[found]] = nesting.right[order][inner[found]]
        by[by_end[found]] = zoned[order][outer[found]]
        late[by_end[found]] = seen.take_end[by[by_end[found]]]
        return Due(soon=soon, late=late, by=by)

    def needed(self, seen: Lifetimes, element: int) -> Int64:
        zoned, nesting = _nesting(seen)
        at = int(np.flatnonzero(zoned == element)[0])
        begin, end = int(nesting.left[at]), int(nesting.right[at])
        inside = (nesting.left >= begin) & (nesting.right <= end) & (nesting.turn >= nesting.turn[at])
        return in_a_row(seen, begin, end, zoned[inside])

    def order(self, lifetimes: Lifetimes) -> Int64:
        zoned, nesting = _nesting(lifetimes)
        brief = np.flatnonzero(lifetimes.put_end > lifetimes.take_start)
        moment = np.maximum(lifetimes.put_start[brief], lifetimes.take_start[brief])
        # At one moment first the long ones end, the inner ones first; then the brief ones come and go; then takes
        # find nothing; then the long ones begin, the outer ones first.
        parts = (
            (lifetimes.put[zoned], nesting.left - 1, 3, nesting.turn),
            (lifetimes.taken[zoned], nesting.right, 0, -nesting.turn),
            (lifetimes.put[brief], moment, 1, 2 * brief),
            (lifetimes.taken[brief], moment, 1, 2 * brief + 1),
            (lifetimes.nothing, free_moments(lifetimes), 2, lifetimes.nothing),
        )
        position = np.concatenate([part[0] for part in parts])
        time = np.concatenate([part[1] for part in parts])
        phase = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
        turn = np.concatenate([part[3] for part in parts])
        ordered = position[np.lexsort((turn, phase, time))]
        return np.asarray(ordered[ordered != NO_INDEX], dtype=np.int64)


def _nesting(lifetimes: Lifetimes) -> tuple[Int64, Nesting]:
    """The elements that are not brief, and how they are nested."""
    zoned = np.flatnonzero(lifetimes.put_end < lifetimes.take_start)
    return zoned, nested(*_times(lifetimes, zoned), lifetimes.horizon + 1)


def _times(lifetimes: Lifetimes, elements: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    # Elements that are there at first were put in this order, one right after the other.
    earliest = lifetimes.put_start[elements] - (lifetimes.put[elements] == NO_INDEX)
    return earliest, lifetimes.put_end[elements], lifetimes.take_start[elements], lifetimes.take_end[elements]


def _shortest(lifetimes: Lifetimes, row: Int64) -> Int64:
    """The row without elements that are not needed: without them no element can be the lowest one, either."""
    if len(row) > REDUCED:
        return row
    used, ranks = np.unique(np.stack(_times(lifetimes, row)), return_inverse=True)
    earliest, begin, end, latest = ranks.reshape(4, -1)
    kept = np.arange(len(row))
    for v in kept.tolist():
        fewer = kept[kept != v]
        if nested(earliest[fewer], begin[fewer], end[fewer], latest[fewer], len(used)).stuck_left >= 0:
            kept = fewer
    return row[kept]


def _not_at_bottom(spans: Spans, lifetimes: Lifetimes, clash: Clash, v: int, first: int, last: int) -> str:
    name = spans.render(lifetimes.value[v])
    if lifetimes.put[v] == NO_INDEX and v != first:
        return f"{name} was above {spans.render(lifetimes.value[first])} at first"
    if lifetimes.put_start[v] >= clash.begin:
        return f"{name} was pushed ({spans.when(int(lifetimes.put[v]))}) after {spans.render(lifetimes.value[first])}"
    taken = int(lifetimes.taken[last])
    how = "stayed" if taken == NO_INDEX else f"was popped later ({spans.when(taken)})"
    return f"{name} was popped ({spans.when(int(lifetimes.taken[v]))}), and {spans.render(lifetimes.value[last])} {how}"


@compiled
def _enclosing(left: Int64, right: Int64, latest: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """For each (start, end), by ascending end, among the rows [left, right] that contain it: (the innermost one, the
    one whose longest element is popped first); -1 if there is none. Rows are nested, and sorted by ascending left, the
    outer ones first."""
    inner = np.full(len(end), -1, dtype=np.int64)
    outer = np.full(len(end), -1, dtype=np.int64)
    pile = np.empty(len(left), dtype=np.int64)
    first = np.empty(len(left), dtype=np.int64)
    height = at = 0
    for i in range(len(end)):
        while at < len(left) and left[at] < end[i]:
            while height and right[pile[height - 1]] <= left[at]:
                height -= 1
            pile[height] = first[height] = at
            if height and latest[first[height - 1]] < latest[at]:
                first[height] = first[height - 1]
            height += 1
            at += 1
        while height and right[pile[height - 1]] < end[i]:
            height -= 1
        low, high = 0, height
        while low < high:
            middle = (low + high) // 2
            if left[pile[middle]] < start[i]:
                low = middle + 1
            else:
                high = middle
        if low:
            inner[i] = pile[low - 1]
            outer[i] = first[low - 1]
    return inner, outer


# The model.


def _stack(state: State, call: Call) -> list[tuple[State, Value]]:
    if call.f == "push":
        return [((*state, call.argument), ANYTHING)]
    return [(state[:-1], state[-1])] if state else [(state, None)]


MODEL = Model(
    name="stack",
    initial=(),
    functions=("push", "pop"),
    apply=_stack,
    effect=element_put,
    needs=element_needed,
    hopeless=buried(Taken.LAST),
    begins=elements(),
    repeats=repeating("push"),
    evidence=always(*any_ok("pop")),
    decided=Decided(by=Collection(_Stack())),
)
