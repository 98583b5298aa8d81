"""Append-only logs to which no element is appended twice: decided in O(n log n) and the size of all reads.

Every read tells a prefix of what the longest one tells, and an append may tell its position; so it is known where most
elements are. What is known of them stands in a row (append, append, read of both, append, …), and the row is possible
if nothing in it began after something behind it had ended.

Positions below a known one of which nobody was told what is there must be filled by appends of which nobody was told
where they are, each with one that began before everything behind it ended, and that ended after everything before it
began. What is left of these comes behind all that is known; if it is of unknown outcome, it need not have happened. The
positions in order, each filled by the append that ends first of those that may, leave none out that cannot wait; and
two appends filled in so are never in the wrong order.

Functions: append, with its position as result where it was told; read, whose lists tell all from position 0 on.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NONE, Int64, compact
from checkers.linearizable.objects.spans import NEVER, Contradiction, Open, Ordered, Outcome, Spans
from harness.compiled import compiled

APPEND, READ = range(2)
NOWHERE = -1


@dataclass(frozen=True, kw_only=True)
class _Row:
    """What happened, and where it stands."""

    operations: Int64
    level: Int64
    """2 p + 1 for the append to position p, 2 p for a read of p elements."""


@dataclass(frozen=True)
class AppendLog:
    """Decides append-only logs."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        row = _row(spans, initial)
        return Ordered() if isinstance(row, _Row) else row

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        row = _row(spans, initial)
        assert isinstance(row, _Row)
        return row.operations[np.lexsort((spans.start[row.operations], row.level))]


def _row(spans: Spans, initial: tuple[int, ...]) -> _Row | Contradiction | Open:
    appends = np.flatnonzero(spans.f == APPEND)
    if NONE in initial or np.any(spans.argument[appends] == NONE):
        return Open("null is appended")
    longest = _longest(spans, initial)
    if not isinstance(longest, _Longest):
        return longest
    place = _places(spans, initial, appends, longest)
    if not isinstance(place, np.ndarray):
        return place
    reads = np.flatnonzero((spans.f == READ) & spans.definite)
    located = place != NOWHERE
    operations = np.concatenate((appends[located], reads))
    level = np.concatenate((2 * place[located] + 1, 2 * _sizes(spans, reads)))
    order = np.lexsort((spans.start[operations], level))
    known = _Row(operations=operations[order], level=level[order])
    return _out_of_order(spans, known, longest) or _filled(spans, appends[~located], known, longest)


# Where elements are known to be.


@dataclass(frozen=True)
class _Longest:
    read: int
    """Position in the spans of who told it; NOWHERE if it is what the log holds at first."""
    told: Int64


def _sizes(spans: Spans, reads: Int64) -> Int64:
    if spans.lists is None:
        return np.zeros(len(reads), dtype=np.int64)
    return np.asarray(np.diff(spans.lists.bounds)[reads], dtype=np.int64)


def _longest(spans: Spans, initial: tuple[int, ...]) -> _Longest | Contradiction:
    """The longest read, of which all others tell a prefix."""
    reads = np.flatnonzero((spans.f == READ) & spans.definite)
    longest = _Longest(NOWHERE, np.array(initial, dtype=np.int64))
    if len(reads) == 0:
        return longest
    sizes = _sizes(spans, reads)
    if sizes.max() >= len(initial) and sizes.max() > 0:
        assert spans.lists is not None
        read = int(reads[np.argmax(sizes)])
        longest = _Longest(read, spans.lists.of(read))
    short = reads[sizes < len(initial)]
    if len(short):
        return Contradiction(
            frozenset({int(short[0])}), f"a read ({spans.when(int(short[0]))}) lacks what was there at first"
        )
    lists = np.empty(0, dtype=np.int64) if spans.lists is None else spans.lists.elements
    bounds = np.zeros(len(spans) + 1, dtype=np.int64) if spans.lists is None else spans.lists.bounds
    read, at = _differing(lists, bounds, reads, longest.told)
    if read >= 0:
        one, other = spans.shown(lists[bounds[read] + at]), spans.shown(longest.told[at])
        return Contradiction(
            frozenset({read, longest.read}),
            f"a read ({spans.when(read)}) told {one} at position {at}, and another one ({spans.when(longest.read)}) "
            f"told {other} there",
        )
    at = _first_differing(np.array(initial, dtype=np.int64), longest.told)
    if at >= 0:
        return Contradiction(
            frozenset({longest.read}),
            f"a read ({spans.when(longest.read)}) told {spans.shown(longest.told[at])} at position {at}, where "
            f"{spans.shown(initial[at])} was at first",
        )
    return longest


@compiled
def _differing(elements: Int64, bounds: Int64, reads: Int64, longest: Int64) -> tuple[int, int]:
    """A read that is no prefix of the longest one, and where they differ."""
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


def _places(spans: Spans, initial: tuple[int, ...], appends: Int64, longest: _Longest) -> Int64 | Contradiction | Open:
    """Where each append put its element, NOWHERE if nobody was told."""
    at_first, told = len(initial), longest.told[len(initial) :]
    number = compact(np.concatenate((np.array(initial, dtype=np.int64), spans.argument[appends], told)))
    elements, told_number = np.split(number, [at_first + len(appends)])
    owner = np.full(int(number.max(initial=-1)) + 1, NOWHERE, dtype=np.int64)
    owner[elements] = np.arange(len(elements))
    if np.any(owner[elements] != np.arange(len(elements))):
        return Open("an element is appended twice")
    place = np.full(len(appends), NOWHERE, dtype=np.int64)
    append = owner[told_number] - at_first
    places = np.arange(at_first, len(longest.told))
    appended = append >= 0
    place[append[appended]] = places[appended]
    is_wrong = ~appended
    is_wrong[appended] = place[append[appended]] != places[appended]
    wrong = np.flatnonzero(is_wrong)
    if len(wrong):
        is_unknown = owner[told_number[wrong[0]]] == NOWHERE
        how = "which nobody appended" if is_unknown else "twice"
        return Contradiction(
            frozenset({longest.read}), f"a read ({spans.when(longest.read)}) told {spans.shown(told[wrong[0]])}, {how}"
        )
    positioned = spans.result[appends] != NONE
    place_told = spans.result[appends]
    wrong = np.flatnonzero(positioned & np.where(place == NOWHERE, place_told < len(longest.told), place != place_told))
    if len(wrong):
        one = int(appends[wrong[0]])
        where = int(spans.result[one])
        really = (
            f"but {spans.shown(longest.told[where])} is there" if 0 <= where < len(longest.told) else "but it is not"
        )
        by = "" if longest.read == NOWHERE else f", as a read tells ({spans.when(longest.read)})"
        return Contradiction(
            frozenset({one, longest.read} - {NOWHERE}),
            f"an append told that {spans.shown(spans.argument[one])} is at position {where} ({spans.when(one)}), "
            f"{really}{by}",
        )
    place[positioned] = place_told[positioned]
    beyond = np.flatnonzero(place >= len(longest.told))
    twice = beyond[_repeated(place[beyond])]
    if len(twice):
        one, other = (int(a) for a in appends[np.flatnonzero(place == place[twice[0]])[:2]])
        return Contradiction(
            frozenset({one, other}),
            f"appends of {spans.shown(spans.argument[one])} ({spans.when(one)}) and of "
            f"{spans.shown(spans.argument[other])} ({spans.when(other)}) both told that they are at position "
            f"{place[twice[0]]}",
        )
    return place


def _repeated(values: Int64) -> Int64:
    """Positions of values that were there before."""
    number = compact(values)
    first = np.empty(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return np.flatnonzero(first[number] != np.arange(len(number)))


# Whether what is known is in order.


def _out_of_order(spans: Spans, known: _Row, longest: _Longest) -> Contradiction | None:
    operations = known.operations
    begun = np.maximum.accumulate(np.append(-1, spans.start[operations]))[:-1]
    early = np.flatnonzero(spans.end[operations] < begun)
    if len(early) == 0:
        return None
    behind = int(operations[early[0]])
    before = int(operations[int(np.argmax(spans.start[operations[: early[0]]]))])
    return Contradiction(
        _with_tellers(spans, longest, {before, behind}),
        f"{_described(spans, behind)} had ended when {_described(spans, before)} began, which comes before it",
    )


def _with_tellers(spans: Spans, longest: _Longest, known: set[int]) -> frozenset[int]:
    """These, and who told where they are, if they did not do so themselves."""
    tells = [spans.f[one] == READ or spans.result[one] != NONE for one in known]
    return frozenset(known if all(tells) else known | {longest.read})


def _described(spans: Spans, one: int) -> str:
    if spans.f[one] == APPEND:
        return f"the append of {spans.shown(spans.argument[one])} ({spans.when(one)})"
    size = 0 if spans.lists is None else len(spans.lists.of(one))
    return f"the read of {size} elements ({spans.when(one)})"


# Positions of which nobody was told what is there.


def _filled(spans: Spans, free: Int64, known: _Row, longest: _Longest) -> _Row | Contradiction:
    """The same, with the appends that are free where they may be."""
    first = len(longest.told)
    last = (int(known.level.max(initial=2 * first)) - 1) // 2
    beyond = known.level[(known.level % 2 == 1) & (known.level > 2 * first)] // 2
    missing = last + 1 - first - len(beyond)
    if missing > len(free):
        return _too_few(spans, free, known, missing)
    is_hole = np.ones(last + 1 - first, dtype=np.bool_)
    is_hole[beyond - first] = False
    holes = first + np.flatnonzero(is_hole)
    behind = np.append(np.searchsorted(known.level, 2 * holes + 1), len(known.level))
    begun = np.maximum.accumulate(np.append(-1, spans.start[known.operations]))
    must_end = np.minimum.accumulate(np.append(spans.end[known.operations], NEVER)[::-1])[::-1]
    taken, wrong, hole = _fill(spans.start[free], spans.end[free], begun[behind], must_end[behind])
    if wrong >= 0:
        rivals = _rivals(spans.end[free], taken, wrong, hole)
        return _without_place(spans, int(free[wrong]), free[rivals], known, int(behind[hole]), longest)
    if hole >= 0:
        return _unfilled(spans, free, known, int(behind[hole]), int(holes[hole]), longest)
    happened = (taken < len(holes)) | spans.definite[free]
    rank = np.empty(len(free), dtype=np.int64)
    rank[np.argsort(spans.end[free], kind="stable")] = np.arange(len(free))
    place = np.where(taken < len(holes), np.append(holes, 0)[taken], last + 1 + rank)
    return _Row(
        operations=np.concatenate((known.operations, free[happened])),
        level=np.concatenate((known.level, 2 * place[happened] + 1)),
    )


def _too_few(spans: Spans, free: Int64, known: _Row, missing: int) -> Contradiction:
    top = int(known.operations[-1])
    return Contradiction(
        frozenset({top, *free.tolist()}),
        f"nobody was told what is at {missing} positions below that of {_described(spans, top)}, but only {len(free)} "
        "appends can be there",
    )


def _unfilled(spans: Spans, free: Int64, known: _Row, behind: int, position: int, longest: _Longest) -> Contradiction:
    """What stands behind this position, from there on in the row, ended too early."""
    later = known.operations[behind:]
    proof = int(later[np.argmin(spans.end[later])])
    begun = free[spans.start[free] < spans.end[proof]]
    return Contradiction(
        _with_tellers(spans, longest, {proof}) | set(begun.tolist()),
        f"when {_described(spans, proof)} ended, nothing can have been at position {position} before it: no append "
        "that had begun is left for it",
    )


def _without_place(
    spans: Spans, wrong: int, rivals: Int64, known: _Row, behind: int, longest: _Longest
) -> Contradiction:
    """All that could be its place, up to there in the row, is taken; the rivals had to take it, too."""
    earlier = known.operations[:behind]
    proof = int(np.argmax(spans.start[earlier]))
    begun = int(spans.start[[wrong, *rivals.tolist()]].min())
    over = np.flatnonzero(spans.end[earlier[:proof]] < begun)
    between = earlier[int(over[-1]) if len(over) else 0 : proof + 1]
    appends = between[spans.f[between] == APPEND]
    return Contradiction(
        _with_tellers(spans, longest, {int(earlier[proof]), *appends.tolist()}) | {wrong, *rivals.tolist()},
        f"{_described(spans, wrong)} had ended when {_described(spans, int(earlier[proof]))} began, and no position "
        "before that is left for it",
    )


@compiled
def _fill(start: Int64, end: Int64, begun: Int64, must_end: Int64) -> tuple[Int64, int, int]:
    """The hole for each append, by ascending start; the last hole has room for all that is left.

    Returns also an append for which there is none, or -1, and the hole at which that turned out, or -1.
    """
    holes = len(begun)
    taken = np.full(len(start), holes - 1, dtype=np.int64)
    waiting = [(np.int64(0), np.int64(0))]
    waiting.pop()
    at = 0
    for hole in range(holes - 1):
        while at < len(start) and start[at] < must_end[hole]:
            heapq.heappush(waiting, (end[at], np.int64(at)))
            at += 1
        if len(waiting) == 0:
            return taken, -1, hole
        ends, one = heapq.heappop(waiting)
        if ends < begun[hole]:
            return taken, int(one), hole
        taken[one] = hole
    while at < len(start):
        heapq.heappush(waiting, (end[at], np.int64(at)))
        at += 1
    if len(waiting) and waiting[0][0] < begun[holes - 1]:
        return taken, int(waiting[0][1]), holes - 1
    return taken, -1, -1


@compiled
def _rivals(end: Int64, taken: Int64, wrong: int, hole: int) -> Int64:
    """Who took the holes that this append could have taken before this hole, all of whom could wait no longer."""
    by_hole = np.full(hole, -1, dtype=np.int64)
    for one in range(len(end)):
        if taken[one] < hole:
            by_hole[taken[one]] = one
    since = hole
    while since > 0 and by_hole[since - 1] >= 0 and end[by_hole[since - 1]] <= end[wrong]:
        since -= 1
    return by_hole[since:]


APPEND_LOG = AppendLog()
