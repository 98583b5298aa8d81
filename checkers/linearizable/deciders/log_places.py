"""Append-only logs: where elements are known to be, from reads and from the positions that appends returned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NO_INDEX, NONE, Int64, compact
from checkers.linearizable.deciders.spans import Contradiction, Open, Spans
from harness.compiled import compiled

APPEND, READ = range(2)


@dataclass(frozen=True)
class Longest:
    read: int
    """Position in the spans of the read that shows it; NO_INDEX if it is the log's first content."""
    elements: Int64


def read_sizes(spans: Spans, reads: Int64) -> Int64:
    if spans.lists is None:
        return np.zeros(len(reads), dtype=np.int64)
    return np.asarray(np.diff(spans.lists.bounds)[reads], dtype=np.int64)


def longest_read(spans: Spans, initial: tuple[int, ...]) -> Longest | Contradiction:
    """The longest read, or the contradiction that another read does not show a prefix of it."""
    reads = np.flatnonzero((spans.f == READ) & spans.definite)
    longest = Longest(NO_INDEX, np.array(initial, dtype=np.int64))
    if len(reads) == 0:
        return longest
    sizes = read_sizes(spans, reads)
    if sizes.max() >= len(initial) and sizes.max() > 0:
        assert spans.lists is not None
        read = int(reads[np.argmax(sizes)])
        longest = Longest(read, spans.lists.of(read))
    short = reads[sizes < len(initial)]
    if len(short):
        return Contradiction(
            frozenset({int(short[0])}), f"a read ({spans.when(int(short[0]))}) lacks what was there at first"
        )
    lists = np.empty(0, dtype=np.int64) if spans.lists is None else spans.lists.elements
    bounds = np.zeros(len(spans) + 1, dtype=np.int64) if spans.lists is None else spans.lists.bounds
    read, at = _differing(lists, bounds, reads, longest.elements)
    if read >= 0:
        one, other = spans.render(lists[bounds[read] + at]), spans.render(longest.elements[at])
        return Contradiction(
            frozenset({read, longest.read}),
            f"a read ({spans.when(read)}) showed {one} at position {at}, and another one ({spans.when(longest.read)}) "
            f"showed {other} there",
        )
    at = _first_differing(np.array(initial, dtype=np.int64), longest.elements)
    if at >= 0:
        return Contradiction(
            frozenset({longest.read}),
            f"a read ({spans.when(longest.read)}) showed {spans.render(longest.elements[at])} at position {at}, where "
            f"{spans.render(initial[at])} was at first",
        )
    return longest


@compiled
def _differing(elements: Int64, bounds: Int64, reads: Int64, longest: Int64) -> tuple[int, int]:
    """(a read that is not a prefix of the longest one, the place where they differ)."""
    for read in reads:
        at = _first_differing(elements[bounds[read] : bounds[read + 1]], longest)
        if at >= 0:
            return read, at
    return -1, -1


@compiled
def _first_differing(one: Int64, other: Int64) -> int:
    for at in range(len(one)):
        if one[at] != other[at]:
            return at
    return -1


def places(spans: Spans, initial: tuple[int, ...], appends: Int64, longest: Longest) -> Int64 | Contradiction | Open:
    """The place where each append put its element, NO_INDEX if it is unknown."""
    at_first, shown = len(initial), longest.elements[len(initial) :]
    number = compact(np.concatenate((np.array(initial, dtype=np.int64), spans.argument[appends], shown)))
    elements, shown_number = np.split(number, [at_first + len(appends)])
    owner = np.full(int(number.max(initial=-1)) + 1, NO_INDEX, dtype=np.int64)
    owner[elements] = np.arange(len(elements))
    if np.any(owner[elements] != np.arange(len(elements))):
        return Open("an element is appended twice")
    place = np.full(len(appends), NO_INDEX, dtype=np.int64)
    append = owner[shown_number] - at_first
    places = np.arange(at_first, len(longest.elements))
    appended = append >= 0
    place[append[appended]] = places[appended]
    is_wrong = ~appended
    is_wrong[appended] = place[append[appended]] != places[appended]
    wrong = np.flatnonzero(is_wrong)
    if len(wrong):
        is_unknown = owner[shown_number[wrong[0]]] == NO_INDEX
        how = "which was never appended" if is_unknown else "twice"
        return Contradiction(
            frozenset({longest.read}),
            f"a read ({spans.when(longest.read)}) showed {spans.render(shown[wrong[0]])}, {how}",
        )
    positioned = spans.result[appends] != NONE
    place_returned = spans.result[appends]
    wrong = np.flatnonzero(
        positioned & np.where(place == NO_INDEX, place_returned < len(longest.elements), place != place_returned)
    )
    if len(wrong):
        one = int(appends[wrong[0]])
        where = int(spans.result[one])
        really = (
            f"but {spans.render(longest.elements[where])} is there"
            if 0 <= where < len(longest.elements)
            else "but it is not"
        )
        by = "" if longest.read == NO_INDEX else f", as a read shows ({spans.when(longest.read)})"
        return Contradiction(
            frozenset({one, longest.read} - {NO_INDEX}),
            f"an append returned that {spans.render(spans.argument[one])} is at position {where} ({spans.when(one)}), "
            f"{really}{by}",
        )
    place[positioned] = place_returned[positioned]
    beyond = np.flatnonzero(place >= len(longest.elements))
    twice = beyond[_repeated(place[beyond])]
    if len(twice):
        one, other = (int(a) for a in appends[np.flatnonzero(place == place[twice[0]])[:2]])
        return Contradiction(
            frozenset({one, other}),
            f"appends of {spans.render(spans.argument[one])} ({spans.when(one)}) and of "
            f"{spans.render(spans.argument[other])} ({spans.when(other)}) both returned that they are at position "
            f"{place[twice[0]]}",
        )
    return place


def _repeated(values: Int64) -> Int64:
    """Positions of values that were there before."""
    number = compact(values)
    first = np.empty(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return np.flatnonzero(first[number] != np.arange(len(number)))
