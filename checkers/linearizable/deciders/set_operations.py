"""Calls on one set, with numbers for the elements that they are about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NO_INDEX, NONE, Bool, Int64, compact
from checkers.linearizable.deciders.spans import Lists, Open, Spans
from harness.compiled import compiled

ADD, REMOVE, CONTAINS, READ = range(4)


FALSE, TRUE = range(2)


FAR = 1 << 60
"""Stands for NEVER in arithmetic with times."""


@dataclass(frozen=True, kw_only=True)
class SetCalls:
    """Operations on a set, with numbers for the elements that they are about."""

    spans: Spans
    values: Int64
    """The value of each element; NONE for numbers that no element has."""
    element: Int64
    """By operation: its element; the number of elements for reads of everything."""
    end: Int64
    """By operation: its end, with FAR in place of NEVER."""
    add: Int64
    """By element: the operation that adds it, or NO_INDEX."""
    remove: Int64
    at_first: Bool
    """By element: whether it is there at first."""
    lists: Lists
    """What reads of everything show, as numbers of elements, each at most once in a list."""

    @property
    def reads(self) -> bool:
        return bool(np.any(self.spans.f == READ))

    def render(self, element: int) -> str:
        return self.spans.render(self.values[element])

    def start_of(self, operations: Int64, otherwise: int) -> Int64:
        return np.where(operations == NO_INDEX, otherwise, np.append(self.spans.start, 0)[operations])

    def end_of(self, operations: Int64, otherwise: int) -> Int64:
        return np.where(operations == NO_INDEX, otherwise, np.append(self.end, 0)[operations])

    def result_of(self, operations: Int64) -> Int64:
        return np.where(operations == NO_INDEX, NONE, np.append(self.spans.result, 0)[operations])


def set_calls(spans: Spans, initial: tuple[int, ...]) -> SetCalls | Open:
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
        call = np.full(len(values), NO_INDEX, dtype=np.int64)
        own = np.flatnonzero(spans.f == f)
        call[element[own]] = own
        again = np.flatnonzero(call[element[own]] != own)
        if len(again):
            what = "added" if f == ADD else "removed"
            return Open(f"{spans.render(values[element[own[again[0]]]])} is {what} more than once")
        calls.append(call)
    add, remove = calls
    if np.any(there & (add != NO_INDEX)):
        return Open("what is there at first is added again")
    if np.any(spans.f == READ) and np.any((remove != NO_INDEX) & np.append(spans.definite, False)[remove]):
        return Open("there are removes, and reads of everything")
    return SetCalls(
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


def described(calls: SetCalls, one: int) -> str:
    spans = calls.spans
    f = ("add", "remove", "contains", "read")[spans.f[one]]
    if spans.f[one] == READ:
        return f"the read of {len(calls.lists.of(one))} elements ({spans.when(one)})"
    answer = "" if spans.result[one] == NONE else f" that returned {'true' if spans.result[one] == TRUE else 'false'}"
    return f"the {f} {spans.render(spans.argument[one])}{answer} ({spans.when(one)})"
