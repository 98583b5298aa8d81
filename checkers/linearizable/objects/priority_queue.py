"""Priority queues to which no element is put twice: decided in O(n log n).

A dequeue returns the least element that is there. So there must be a moment of its time, after its element was put, at
which no smaller element must be there: an element must be there from the end of its enqueue to the begin of its
dequeue. A smaller element could also be kept from being taken by an even smaller one, but only while that one must be
there anyway. So elements are decided one by one, the least first, each taken as early as possible. A dequeue that finds
nothing needs a moment at which no element at all must be there. Dequeues of unknown outcome are described in
`indefinite_dequeues`.

The numbers of elements must be ordered as the elements are.

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
from checkers.linearizable.deciders.lifetimes import QUEUE, Lifetimes, free_moments, in_a_row, named
from checkers.linearizable.deciders.spans import Spans
from checkers.linearizable.model import (
    ANYTHING,
    Call,
    Columns,
    Decided,
    Model,
    State,
    Value,
    always,
    elements,
    repeating,
)
from checkers.linearizable.objects.elements import element_needed, element_put
from checkers.linearizable.values import NEVER, frozen
from harness.compiled import compiled

STAYS = -1
NO_MOMENT = -2


class _PriorityQueue:
    words = QUEUE

    def clash(self, lifetimes: Lifetimes) -> Clash | None:
        wrong = np.flatnonzero(_moments_of(lifetimes) == NO_MOMENT)
        if len(wrong) == 0:
            return never_empty(lifetimes)
        element = int(wrong[np.argmin(lifetimes.value[wrong])])
        begin, end = _first_chance(lifetimes, element), int(lifetimes.take_end[element])
        smaller = np.flatnonzero(lifetimes.value < lifetimes.value[element])
        row = in_a_row(lifetimes, begin, end, smaller)
        return Clash(np.append(row, element), begin, end)

    def because(self, spans: Spans, lifetimes: Lifetimes, clash: Clash) -> str:
        if clash.empty_take != NO_INDEX:
            return never_empty_because(spans, lifetimes, clash, self.words)
        row, element = clash.elements[:-1], clash.elements[-1]
        return (
            f"a dequeue returned {spans.render(lifetimes.value[element])} "
            f"({spans.when(int(lifetimes.taken[element]))}), but as long as this can have been there something smaller "
            f"was there, too: {named(spans, lifetimes, row)}"
        )

    def due(self, seen: Lifetimes, left: Lifetimes) -> Due:
        down = np.argsort(-seen.value, kind="stable")
        left_down = np.argsort(-left.value, kind="stable")
        soon, by = _due(
            seen.value[down],
            _moments_of(seen)[down],
            seen.take_end[down],
            left.value[left_down],
            left.put_end[left_down],
            seen.horizon,
        )
        due = Due(*(np.full(len(left_down), NEVER) for _ in range(3)))
        found = by >= 0
        due.soon[left_down[found]] = soon[found]
        due.by[left_down[found]] = down[by[found]]
        due.late[left_down[found]] = seen.take_end[down[by[found]]]
        return due

    def needed(self, seen: Lifetimes, element: int) -> Int64:
        moment = int(_moments_of(seen)[element])
        smaller = np.flatnonzero(seen.value < seen.value[element])
        return np.append(in_a_row(seen, _first_chance(seen, element), moment, smaller), element)

    def order(self, lifetimes: Lifetimes) -> Int64:
        moment = _moments_of(lifetimes)
        rank = np.argsort(np.argsort(lifetimes.value, kind="stable"), kind="stable")
        at_once = (moment != STAYS) & (lifetimes.put_end > moment)
        # At one moment, first elements are taken, the least first, some of them put right before; then takes find
        # nothing; then other elements are put.
        parts = (
            (lifetimes.put, np.where(at_once, moment, lifetimes.put_end - 1), np.where(at_once, 0, 2), 2 * rank),
            (lifetimes.taken, moment, np.zeros_like(rank), 2 * rank + 1),
            (lifetimes.nothing, free_moments(lifetimes), np.ones_like(lifetimes.nothing), lifetimes.nothing),
        )
        position, time, phase, turn = (np.concatenate([part[i] for part in parts]) for i in range(4))
        ordered = position[np.lexsort((turn, phase, time))]
        return np.asarray(ordered[ordered != NO_INDEX], dtype=np.int64)


def _first_chance(lifetimes: Lifetimes, element: int) -> int:
    return int(max(lifetimes.put_start[element], lifetimes.take_start[element]))


def _moments_of(lifetimes: Lifetimes) -> Int64:
    """When each element is taken: t stands for a moment between t and t + 1. STAYS if it is not taken. NO_MOMENT for
    the least one that cannot be taken, and for all greater ones."""
    return _moments(
        np.argsort(lifetimes.value, kind="stable"),
        np.maximum(lifetimes.put_start, lifetimes.take_start),
        lifetimes.put_end,
        lifetimes.take_start,
        lifetimes.take_end,
        lifetimes.horizon,
    )


@compiled
def _moments(order: Int64, chance: Int64, put_end: Int64, take_start: Int64, take_end: Int64, horizon: int) -> Int64:
    moment = np.full(len(order), NO_MOMENT, dtype=np.int64)
    free = np.arange(horizon + 3)
    for v in order:
        moment[v] = STAYS
        if take_end[v] <= horizon:
            moment[v] = _next_free(free, chance[v])
            if moment[v] >= take_end[v]:
                moment[v] = NO_MOMENT
                return moment
        t = put_end[v]
        while t < take_start[v]:
            t = _next_free(free, t)
            if t < take_start[v]:
                free[t] = t + 1
    return moment


@compiled
def _next_free(free: Int64, t: int) -> int:
    while free[t] != t:
        free[t] = free[free[t]]
        t = free[t]
    return t


@compiled
def _due(value: Int64, moment: Int64, latest: Int64, left: Int64, put_end: Int64, horizon: int) -> tuple[Int64, Int64]:
    """For each element left, among the greater elements that are not taken before its put had ended: (the first moment,
    the element with the first latest moment, or -1). Both kinds of elements are sorted by descending value."""
    soon = np.full(len(left), -1, dtype=np.int64)
    by = np.full(len(left), -1, dtype=np.int64)
    # Fenwick trees over moments, from the last one to the first.
    first = np.full(horizon + 2, horizon + 1, dtype=np.int64)
    urgent = np.full(horizon + 2, -1, dtype=np.int64)
    at = 0
    for i in range(len(left)):
        while at < len(value) and value[at] > left[i]:
            node = horizon + 1 - moment[at]
            while node < len(first):
                first[node] = min(first[node], moment[at])
                if urgent[node] < 0 or latest[at] < latest[urgent[node]]:
                    urgent[node] = at
                node += node & -node
            at += 1
        node = horizon - put_end[i]
        while node > 0:
            if urgent[node] >= 0:
                if by[i] < 0 or latest[urgent[node]] < latest[by[i]]:
                    by[i] = urgent[node]
                if soon[i] < 0 or first[node] < soon[i]:
                    soon[i] = first[node]
            node -= node & -node
    return soon, by


# The model.


def _priority_queue(state: State, call: Call) -> list[tuple[State, Value]]:
    """dequeue returns the least element."""
    if call.f == "enqueue":
        return [(tuple(sorted((*state, call.argument))), ANYTHING)]
    return [(state[1:], state[0])] if state else [(state, None)]


MODEL = Model(
    name="priority-queue",
    initial=(),
    functions=("enqueue", "dequeue"),
    apply=_priority_queue,
    effect=element_put,
    needs=element_needed,
    begins=elements(lambda value: tuple(sorted(map(frozen, value)))),
    repeats=repeating("enqueue"),
    evidence=always(*any_ok("dequeue")),
    decided=Decided(by=Collection(_PriorityQueue()), columns=Columns.ORDERED_VALUES),
)
